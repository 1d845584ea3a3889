"""The contract of docs/surfaces.md: everything needed to write a surface."""

from callboard.actors.runtime import Call, committing, current_call, foresee, keep_version, post_note
from callboard.actors.servers import UNKNOWN, InDoubtError, Need, Server, Stage, ToolError, tool
from callboard.messages import (
    Box,
    Control,
    Coverage,
    Effect,
    Foreseen,
    Hazard,
    Intent,
    Look,
    LookBudget,
    Observation,
    Probe,
    Target,
    TargetKind,
)

__all__ = [
    "UNKNOWN",
    "Box",
    "Call",
    "Control",
    "Coverage",
    "Effect",
    "Foreseen",
    "Hazard",
    "InDoubtError",
    "Intent",
    "Look",
    "LookBudget",
    "Need",
    "Observation",
    "Probe",
    "Server",
    "Stage",
    "Target",
    "TargetKind",
    "ToolError",
    "committing",
    "current_call",
    "foresee",
    "keep_version",
    "post_note",
    "tool",
]
