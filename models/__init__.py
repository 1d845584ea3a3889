"""Language models: the interface, scripted and function models, and response schemas."""

from callboard.models._build import NamedModels, TaskModels, given_models, named_models, register_form, unused_providers
from callboard.models._judgement import Evidence, read_judgement
from callboard.models._model import (
    Expected,
    FunctionModel,
    Model,
    ModelAnswer,
    ModelRequest,
    ToolInfo,
    threads_here,
)
from callboard.models._proposals import LONGEST_WAIT, ProposingHostResponse
from callboard.models._references import References, look_up, resolve, results_tree
from callboard.models._responses import (
    ActionResponse,
    AgentResponse,
    AppResponse,
    HostResponse,
    LinuxResponse,
    MobileResponse,
    OperatorResponse,
    QuestionResponse,
    SubtaskResponse,
    Words,
    by_picture,
    read_response,
)
from callboard.models._scripted import ScriptedModel
from callboard.models.prompt import chosen, labelled, without_nulls
from callboard.models.recording import RecordedModel, recorder

__all__ = [
    "LONGEST_WAIT",
    "ActionResponse",
    "AgentResponse",
    "AppResponse",
    "Evidence",
    "Expected",
    "FunctionModel",
    "HostResponse",
    "LinuxResponse",
    "MobileResponse",
    "Model",
    "ModelAnswer",
    "ModelRequest",
    "NamedModels",
    "OperatorResponse",
    "ProposingHostResponse",
    "QuestionResponse",
    "RecordedModel",
    "References",
    "ScriptedModel",
    "SubtaskResponse",
    "TaskModels",
    "ToolInfo",
    "Words",
    "by_picture",
    "chosen",
    "given_models",
    "labelled",
    "look_up",
    "named_models",
    "read_judgement",
    "read_response",
    "recorder",
    "register_form",
    "resolve",
    "results_tree",
    "threads_here",
    "unused_providers",
    "without_nulls",
]
