"""The identity of controls, and the state of a window, at the recording of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import RecordedControl

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.messages import Control, Observation, Target


def recorded_control(control: Control, seen: Observation) -> RecordedControl:
    """Describe a control by its kind, its name and its place."""
    place = _place(control)
    peers = [other for other in seen.controls if _place(other) == place]
    position = peers.index(control)
    alike = sum((peer.kind, peer.name) == (control.kind, control.name) for peer in peers)
    return RecordedControl(
        kind=control.kind,
        name=control.name,
        id=control.id,
        place=place,
        before=peers[position - 1].name if position else "",
        after=peers[position + 1].name if position + 1 < len(peers) else "",
        columns=_columns(control),
        alike=alike if alike > 1 else 0,
    )


def _place(control: Control) -> str:
    return next((str(control.detail[key]) for key in ("parent", "below", "in") if control.detail.get(key)), "")


def _columns(control: Control) -> JsonValue:
    header = control.detail.get("header")
    return list(header.values()) if isinstance(header, dict) else header or control.detail.get("columns")


def window_of(observation: Observation, target: Target | None) -> str:  # noqa: ARG001 - some surfaces need it
    """Name the application or the screen that is in front."""
    application = observation.window.get("application")
    return application if isinstance(application, str) else ""


def dialogs_of(observation: Observation) -> tuple[str, ...]:
    """Name the open dialogs."""
    return tuple(control.name for control in observation.controls if control.kind == "dialog")
