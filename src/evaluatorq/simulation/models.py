"""Which model plays which role, and where it is asked: one pool of connections for everything that a run asks.

A client that is handed in instead of the environment's endpoint is a ``ChatModel`` of one's own, which then answers for
every role of the simulation, or a vendor's client, of which the base URL and the key are taken.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard

from evaluatorq.errors import ConfigError, MissingLLMCredentialsError, WrongKind
from evaluatorq.llm.credentials import members_credentials
from evaluatorq.llm.endpoint import Sampling
from evaluatorq.model.calls import DEFAULT_MODEL, DEFAULT_SMART_MODEL
from evaluatorq.model.runs import NOTHING_LEARNED, Learned
from evaluatorq.pacing.limits import LimiterOptions
from evaluatorq.ports import ChatModel
from evaluatorq.simulation.calling import sampling_of, timeout_of
from evaluatorq.simulation.config import LLMCallConfig, SimulationConfig
from evaluatorq.simulation.privacy import keys_among

if TYPE_CHECKING:
    from evaluatorq.llm.client import ModelPool
    from evaluatorq.llm.endpoint import Endpoint

DEFAULT_JUDGE_MODEL = DEFAULT_SMART_MODEL


def fast_model(config: SimulationConfig) -> str:
    """The model that plays the user and writes cases, where none of its own is named."""
    return config.sim_model or _named(config.llm_config) or fast_name()


def smart_model(config: SimulationConfig) -> str:
    """The model that judges and sums up."""
    return config.judge_model or _named(config.llm_config) or smart_name()


def fast_name() -> str:
    """The fast model where no option names one."""
    return os.environ.get("EVALUATORQ_FAST_MODEL") or DEFAULT_MODEL


def smart_name() -> str:
    """The smart model where no option names one."""
    return os.environ.get("EVALUATORQ_SMART_MODEL") or DEFAULT_JUDGE_MODEL


def _named(calls: LLMCallConfig | None) -> str | None:
    return calls.model if calls else None


class Place(NamedTuple):
    """Where a role's model is asked; without a URL where all models are. Its key comes from the variable, if set."""

    base_url: str | None
    key_variable: str

    def endpoint(self) -> Endpoint | None:
        """The endpoint, ``None`` for a role without a place of its own."""
        if self.base_url is None:
            return None
        from evaluatorq.llm.endpoint import API_KEY_VARIABLE, Endpoint  # noqa: PLC0415  only where one is named

        return Endpoint(self.base_url, os.environ.get(self.key_variable) or os.environ.get(API_KEY_VARIABLE) or None)


def fast_place(config: SimulationConfig) -> Place:
    """Where the model is that plays the user and writes cases."""
    return Place(config.sim_base_url, "EVALUATORQ_SIM_API_KEY")


def smart_place(config: SimulationConfig) -> Place:
    """Where the model is that judges and sums up."""
    return Place(config.judge_base_url, "EVALUATORQ_JUDGE_API_KEY")


def target_place(config: SimulationConfig) -> Place:
    """Where the model is that is the agent."""
    return Place(config.openai_base_url, "EVALUATORQ_TARGET_API_KEY")


def model_credentials(config: SimulationConfig) -> tuple[str, ...]:
    """What the endpoints of the run's models and the members of their requests hold and nothing may be written of."""
    calls = config.llm_config or LLMCallConfig()
    found = [*members_credentials(calls.extra_kwargs), *members_credentials(calls.extra_body)]
    in_urls: list[str] = []
    for endpoint_of in _endpoints(config, calls):
        with suppress(ConfigError, MissingLLMCredentialsError):  # where it is needed, asking says what is wrong with it
            endpoint = endpoint_of()
            found += endpoint.secrets if endpoint is not None else ()
            in_urls += endpoint.url_secrets if endpoint is not None else ()
    return (*keys_among(found), *in_urls)


def _endpoints(config: SimulationConfig, calls: LLMCallConfig) -> Iterator[Callable[[], Endpoint | None]]:
    from evaluatorq.llm.endpoint import endpoint_from_environment  # noqa: PLC0415

    yield endpoint_from_environment
    yield Place(calls.base_url, "").endpoint
    for place in (fast_place(config), smart_place(config), target_place(config)):
        yield place.endpoint
    for client in (calls.client, config.generation_client):
        if client is not None and not _is_model(client):
            yield partial(_endpoint_of, client)


class Models(Protocol):
    """Models by name, for either side. ``learned`` is what they turned out to take so far."""

    def learned(self) -> Learned:
        """What was refused, and how structured answers are asked for."""
        ...

    def ours(self, name: str, place: Place | None = None, *, max_tokens: int | None = None) -> ChatModel:
        """A model of the simulation's side; ``max_tokens`` caps its answers where the options do not do so lower."""
        ...

    def theirs(
        self, name: str, place: Place | None = None, *, sampling: Sampling | None = None, timeout_s: float | None = None
    ) -> ChatModel:
        """A model that is the agent; ``timeout_s`` is for one answer."""
        ...


class NoModels:
    """For runs that ask none."""

    def learned(self) -> Learned:
        """Nothing."""
        return NOTHING_LEARNED

    def ours(self, name: str, place: Place | None = None, *, max_tokens: int | None = None) -> ChatModel:
        """Refuses."""
        del max_tokens
        return self.theirs(name, place)

    def theirs(
        self, name: str, place: Place | None = None, *, sampling: Sampling | None = None, timeout_s: float | None = None
    ) -> ChatModel:
        """Refuses."""
        del place, sampling, timeout_s
        raise ConfigError(f"no model is to be asked in this run, yet {name!r} was")


@asynccontextmanager
async def opened_models(
    calls: LLMCallConfig | None, at_once: int, client: object = None, *, limits: LimiterOptions | None = None
) -> AsyncIterator[Models]:
    """The models of one run, ``at_once`` requests under way at most; connections are closed at the end.

    Raises ``MissingLLMCredentialsError`` where the endpoint needs a key and none is set.
    """
    from evaluatorq.llm.client import open_models  # noqa: PLC0415  offline runs import no HTTP client
    from evaluatorq.llm.endpoint import API_KEY_VARIABLE, Endpoint  # noqa: PLC0415

    calls = calls or LLMCallConfig()
    client = calls.client if client is None else client
    own = client if _is_model(client) else None
    given = None if client is None or own is not None else _endpoint_of(client)
    if calls.base_url:
        ours: Endpoint | None = Endpoint(calls.base_url, given.api_key if given else os.environ.get(API_KEY_VARIABLE))
    else:
        ours = given
    async with open_models(at_once, timeout_of(calls), limits=limits) as pool:
        yield _Pooled(pool, calls, ours, own)


class _Pooled:
    """Models that share connections; those without an endpoint of their own are where the environment says."""

    def __init__(self, pool: ModelPool, calls: LLMCallConfig, ours: Endpoint | None, own: ChatModel | None) -> None:
        self._pool = pool
        self._calls = calls
        self._ours = ours
        self._own = own

    def learned(self) -> Learned:
        dropped = {model: tuple(names) for model, names in self._pool.dropped().items()}
        return Learned(param_dropped=dropped, answer_forms=self._pool.answer_forms())

    def ours(self, name: str, place: Place | None = None, *, max_tokens: int | None = None) -> ChatModel:
        own = place.endpoint() if place is not None else None
        if self._own is not None and own is None:
            return self._own
        return self._pool.model(name, own or self._ours, sampling_of(self._calls, max_tokens))

    def theirs(
        self, name: str, place: Place | None = None, *, sampling: Sampling | None = None, timeout_s: float | None = None
    ) -> ChatModel:
        return self._pool.model(name, place.endpoint() if place is not None else None, sampling, timeout_s=timeout_s)


def _is_model(client: object) -> TypeGuard[ChatModel]:
    return callable(getattr(client, "complete", None)) and isinstance(getattr(client, "name", None), str)


def _endpoint_of(client: object) -> Endpoint:
    from evaluatorq.llm.endpoint import Endpoint  # noqa: PLC0415

    base_url, key = getattr(client, "base_url", None), getattr(client, "api_key", None)
    if base_url is None:
        raise WrongKind(
            f"a {type(client).__name__} is no client: give a ChatModel, or a client with base_url and api_key"
        )
    return Endpoint(str(base_url), str(key) if key else None)
