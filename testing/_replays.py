"""Replays of journals, as tests."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.replay import Replay, replay_journal
from callboard.config import Settings
from callboard.journal import JournalReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.processing import AgentSpec


def assert_replays(
    journal: Path,
    task_id: str | None = None,
    settings: Settings | Path | None = None,
    *,
    agents: Sequence[AgentSpec] = (),
) -> tuple[Replay, ...]:
    """Replay a journal's tasks, and check that they match the recording.

    It needs no model and no surface.

    Args:
        journal: The journal's file; the folder of its pictures is beside it.
        task_id: One task; all of them by default.
        settings: Settings to run them with, or their file; by default those with which they ran, or the defaults and
            the environment's, if an older version ran them.
        agents: The kinds of agents of the program's own, as its supervisor had them.

    Raises:
        AssertionError: If a replay differs; it shows the first difference. Or if the journal has no task.
        UnknownTaskError: If it does not have the named task.
        JournalError: If the journal can't be read.
    """
    held = settings if settings is None or isinstance(settings, Settings) else Settings.load(settings)
    with JournalReader.open(journal) as reader:
        tasks = (task_id,) if task_id is not None else tuple(line.id for line in reader.tasks())
    if not tasks:  # an empty test must not pass
        msg = f"the journal {journal} has no task: if its process was killed, {journal.name}-wal belongs beside it"
        raise AssertionError(msg)
    replays = tuple(replay_journal(journal, task, held, agents=agents) for task in tasks)
    for replay in replays:
        if replay.difference is not None:
            msg = f"the task {replay.task.id} goes another way than recorded\n{replay.difference}"
            raise AssertionError(msg)
    return replays


with contextlib.suppress(ImportError):  # everything else here works without pytest
    import pytest

    @pytest.fixture
    def replayed(request: pytest.FixtureRequest) -> Callable[..., tuple[Replay, ...]]:
        """Return `assert_replays`, with paths relative to the test's folder.

        ``replayed("bug-17.db")`` is a whole test. Import the fixture in a test or a conftest; it is not registered by
        itself.
        """

        def check(
            journal: str | Path, task_id: str | None = None, settings: Settings | str | Path | None = None
        ) -> tuple[Replay, ...]:
            here = request.path.parent
            held = here / settings if isinstance(settings, str | Path) else settings
            return assert_replays(here / journal, task_id, held)

        return check
