"""What an answer cost, from a maintained list of prices. What is not on it is unknown, never free.

A price belongs to a model at a provider. The provider is known by the endpoint's address, or where that is a gateway by
the first part of the model's name (``openai/gpt-4o``); nothing is guessed from a bare name at an address that nobody
knows, nor for a server on one's own machine. What the endpoint itself says about cost goes before the list. Where the
answer is another model's than the one that was asked, such as a gateway's second choice, that one's price holds.

The list is loaded with the first answer that may be on it: it takes a quarter of a second and 25 MB.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from evaluatorq.model.usage import NO_USAGE, Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation


def priced(usage: Usage, model: str, base_url: str, *, answered_by: str | None = None) -> Usage:
    """The usage of one answer with its cost in US dollars, where the price is known."""
    if usage.total_cost is not None or _is_at_home(base_url):
        return usage
    place = _place_of_answer(model, answered_by, base_url) if answered_by else _place(model, base_url)
    if place is None:
        return usage
    cost = _look_up(place, usage)
    return usage.model_copy(
        update={
            "input_cost": float(cost.input_price),
            "output_cost": float(cost.output_price),
            "total_cost": float(cost.total_price),
            "priced_calls": usage.calls,
        }
    )


@lru_cache(maxsize=256)
def _is_at_home(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal"))


class _Place(NamedTuple):
    """How the list knows a model: by its name at a provider, or at an address."""

    model: str
    provider: str | None = None
    address: str | None = None


@lru_cache(maxsize=256)
def _place_of_answer(asked: str, answered_by: str, base_url: str) -> _Place | None:
    """Where the price of an answer stands. A name that begins like the one asked for is a version of that model."""
    provider, slash, bare = asked.rpartition("/")
    named = _place(answered_by, base_url)
    if named is None and slash and "/" not in answered_by:
        named = _place(f"{provider}/{answered_by}", base_url)
    is_version = answered_by.rpartition("/")[2].startswith(bare)
    return named if named is not None or not is_version else _place(asked, base_url)


@lru_cache(maxsize=256)
def _place(model: str, base_url: str) -> _Place | None:
    provider, slash, bare = model.partition("/")
    candidates = [_Place(model, address=base_url)] + ([_Place(bare, provider)] if slash else [])
    for place in candidates:
        try:
            _look_up(place, NO_USAGE)
        except LookupError:
            continue
        except ImportError:
            return None
        return place
    return None


def _look_up(place: _Place, usage: Usage) -> PriceCalculation:
    import genai_prices  # noqa: PLC0415  an extra, and heavy

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=usage.cache_creation_tokens or None,
    )
    if place.provider is not None:
        return genai_prices.calc_price(counted, place.model, provider_id=place.provider)
    return genai_prices.calc_price(counted, place.model, provider_api_url=place.address)
