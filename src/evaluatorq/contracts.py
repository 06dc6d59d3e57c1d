"""What agents, models and runs exchange, under the names that published documentation uses."""

from __future__ import annotations

from evaluatorq.model.calls import (
    DEFAULT_FAST_MODEL,
    DEFAULT_SMART_MODEL,
    LLMCallConfig,
)
from evaluatorq.model.messages import (
    FunctionCall,
    InputFile,
    InputImage,
    InputText,
    Message,
    Part,
    ToolCall,
)
from evaluatorq.model.responses import (
    AgentResponse,
    AgentResponseError,
    OutputFunctionCall,
    OutputReasoning,
    OutputText,
)
from evaluatorq.model.results import ResponseTrace
from evaluatorq.model.runs import RunManifest, StageRecord
from evaluatorq.model.usage import TokenUsage, Usage
from evaluatorq.targets.published import AgentTarget

StrategyToolCall = ToolCall
ContentPart = Part
InputTextContent = InputText
InputImageContent = InputImage
InputFileContent = InputFile
TextOutputItem = OutputText
ToolCallOutputItem = OutputFunctionCall
ReasoningOutputItem = OutputReasoning

__all__ = [
    "DEFAULT_FAST_MODEL", "DEFAULT_SMART_MODEL", "AgentResponse", "AgentResponseError", "AgentTarget", "ContentPart",
    "FunctionCall", "InputFileContent", "InputImageContent", "InputTextContent", "LLMCallConfig", "Message",
    "ReasoningOutputItem", "ResponseTrace", "RunManifest", "StageRecord", "StrategyToolCall", "TextOutputItem",
    "TokenUsage", "ToolCallOutputItem", "Usage",
]  # fmt: skip
