"""Fixtures of the tests of PowerPoint decks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("pptx")


@pytest.fixture(scope="session")
def sample_deck() -> bytes:
    """Give the bytes of a deck of five slides."""
    import slide_decks

    return slide_decks.sample_deck()


@pytest.fixture
def deck(workspace: Path, sample_deck: bytes) -> Path:
    """Give the deck as a file of the workspace."""
    path = workspace / "deck.pptx"
    path.write_bytes(sample_deck)
    return path


@pytest.fixture
def titles(call: Callable[..., object]) -> Callable[[], list[str]]:
    """List the names of the deck's slides in order."""
    return lambda: [
        control["name"] for control in call("get_controls", "deck.pptx")["controls"] if control["kind"] == "slide"
    ]
