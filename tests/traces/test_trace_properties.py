"""Whatever the participants do, the trace loses nothing, fits its schema, and replays without a difference."""

from __future__ import annotations

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_samples import PAID, RUDE, SAYS, call, checked, shop

from evaluatorq.errors import CallError
from evaluatorq.model.events import Event
from evaluatorq.model.runs import Limits
from evaluatorq.model.trace import Trace
from evaluatorq.ports import TargetReply, UserReply
from evaluatorq.records.trace import trace_of
from evaluatorq.records.trace_events import events_of
from evaluatorq.replay import replay_sync
from evaluatorq.testing import FakeClock, a_datapoint, a_plan, a_scenario, crew_of, drive, verdict

faults = st.builds(
    CallError,
    st.sampled_from(["rate_limit", "timeout", "auth", "malformed_response", "empty_reply"]),
    st.just("it went wrong"),
    retryable=st.booleans(),
    usage=st.sampled_from([None, PAID]),
)
texts = st.sampled_from(["Hello", "I refund it now", "ß \U0001f600 \x00 <act>", "Hello"])
users = st.lists(
    st.builds(UserReply, texts, stop=st.booleans(), usage=st.sampled_from([None, PAID])) | faults,
    min_size=1,
    max_size=4,
)
names = st.sampled_from(["look_up", "refund", "no_such_tool"])
calls = st.builds(
    lambda name, order: TargetReply((call(name, 1, order=order),), usage=PAID), names, st.sampled_from(["A1", "Z9"])
)
targets = st.lists(texts | calls | faults, min_size=1, max_size=5)
quotes = st.sampled_from([False, "I refund it now", "nobody said this", "Hello"])
judges = st.lists(
    st.builds(lambda a, b, stop: verdict({0: a, 1: b}, stop=stop, usage=PAID), quotes, quotes, st.booleans()) | faults,
    min_size=1,
    max_size=4,
)
limits = st.builds(
    Limits,
    max_turns=st.integers(1, 4),
    tool_rounds=st.integers(1, 2),
    judge_every=st.integers(0, 2),
    stop_on_violation=st.booleans(),
)
patches = st.sampled_from([None, [{"before_turn": 1, "patch": {"orders": {"A1": None, "B2": "new"}}}]])


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(users, targets, judges, limits, patches, st.data())
def test_any_conversation_and_any_beginning_of_it(user, target, judge, limit, events, data) -> None:
    scenario = a_scenario(
        criteria=[SAYS, RUDE], events=events, goal_state=[{"pointer": "/orders/A1", "equals": "refunded"}]
    )
    plan = a_plan(a_datapoint(scenario), limits=limit)
    happened: list[Event] = []

    async def run() -> None:
        await drive(plan, crew_of(user=user, target=target, judge=judge, environment=shop), happened, FakeClock())

    anyio.run(run)
    some = happened[: data.draw(st.integers(1, len(happened)))]
    for seen in (happened, some):
        trace = Trace.model_validate_json(checked(trace_of(plan, 0, seen)).line())
        assert list(events_of(trace)) == seen
        assert replay_sync(trace).drifts == ()
        assert replay_sync(trace, environment=lambda _datapoint, _seed: shop(), live_tools=True).drifts == ()
