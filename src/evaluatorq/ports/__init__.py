"""The seams to the outside: protocols of one to three methods. Fakes that keep them ship in ``evaluatorq.testing``.

Participants return plain *replies*; only the driver makes events. A participant that fails raises ``CallError``;
anything else it raises is a fault of that participant, recorded as such.
"""

from __future__ import annotations

from evaluatorq.ports.making import (
    DetectorFactory,
    EnvironmentFactory,
    FinderFactory,
    JudgeFactory,
    Seat,
    SourceFactory,
    TargetFactory,
    UserFactory,
)
from evaluatorq.ports.models import (
    AnswerSpec,
    ChatModel,
    ChatPrefix,
    ChatReply,
    ChatRequest,
    closed_object,
)
from evaluatorq.ports.observing import (
    BeliefDetector,
    BeliefReply,
    ClaimFinder,
    ClaimReply,
    EventPage,
    LedgerEvent,
    ObservationSource,
    ObservedTurn,
)
from evaluatorq.ports.participants import (
    Attentive,
    Changeable,
    Closeable,
    Environment,
    Forgetful,
    Judge,
    JudgeReply,
    Target,
    TargetReply,
    ToolSpec,
    ToolsReply,
    UserReply,
    UserSimulator,
)
from evaluatorq.ports.traces import (
    TraceQuery,
    TraceStore,
)
from evaluatorq.ports.watching import (
    Analyst,
    Attendant,
    Briefed,
    CaseOrder,
    Commissioned,
    Evaluator,
    ReadResult,
    Score,
    Sink,
)

__all__ = [
    "Analyst",
    "AnswerSpec",
    "Attendant",
    "Attentive",
    "BeliefDetector",
    "BeliefReply",
    "Briefed",
    "CaseOrder",
    "Changeable",
    "ChatModel",
    "ChatPrefix",
    "ChatReply",
    "ChatRequest",
    "ClaimFinder",
    "ClaimReply",
    "Closeable",
    "Commissioned",
    "DetectorFactory",
    "Environment",
    "EnvironmentFactory",
    "Evaluator",
    "EventPage",
    "FinderFactory",
    "Forgetful",
    "Judge",
    "JudgeFactory",
    "JudgeReply",
    "LedgerEvent",
    "ObservationSource",
    "ObservedTurn",
    "ReadResult",
    "Score",
    "Seat",
    "Sink",
    "SourceFactory",
    "Target",
    "TargetFactory",
    "TargetReply",
    "ToolSpec",
    "ToolsReply",
    "TraceQuery",
    "TraceStore",
    "UserFactory",
    "UserReply",
    "UserSimulator",
    "closed_object",
]
