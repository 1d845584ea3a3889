"""Level 2: the four phases of a step.

Their middleware and each agent's strategies are here, too.
"""

from callboard.actors.processing._action_list import CHANGED
from callboard.actors.processing._agent_table import (
    AGENTS,
    MACHINES,
    ON_PICTURE,
    ON_TARGET,
    AgentPipeline,
    pipeline,
)
from callboard.actors.processing._answers import decision_of
from callboard.actors.processing._asking import AnsweredElsewhere, CallAsks, CallAsksNoMore
from callboard.actors.processing._call_record import CallRecord
from callboard.actors.processing._check import OTHER_POINT, UNSEEN_POINT
from callboard.actors.processing._check_inputs import CheckInputs
from callboard.actors.processing._context import Context, Meter, tell_phases
from callboard.actors.processing._middleware import PhaseCall, retried
from callboard.actors.processing._phases import Acted, Strategies
from callboard.actors.processing._pipeline import Pipeline
from callboard.actors.processing._recover import GONE
from callboard.actors.processing._remote_pipeline import RemotePipeline, RemoteTerms, RemoteWork
from callboard.actors.processing._services import AgentTraits, Services, SharedNotes
from callboard.actors.processing._spec import AgentSpec, agent_table, named_agents, proposing
from callboard.actors.processing.checks import Checker

__all__ = [
    "AGENTS",
    "CHANGED",
    "GONE",
    "MACHINES",
    "ON_PICTURE",
    "ON_TARGET",
    "OTHER_POINT",
    "UNSEEN_POINT",
    "Acted",
    "AgentPipeline",
    "AgentSpec",
    "AgentTraits",
    "AnsweredElsewhere",
    "CallAsks",
    "CallAsksNoMore",
    "CallRecord",
    "CheckInputs",
    "Checker",
    "Context",
    "Meter",
    "PhaseCall",
    "Pipeline",
    "RemotePipeline",
    "RemoteTerms",
    "RemoteWork",
    "Services",
    "SharedNotes",
    "Strategies",
    "agent_table",
    "decision_of",
    "named_agents",
    "pipeline",
    "proposing",
    "retried",
    "tell_phases",
]
