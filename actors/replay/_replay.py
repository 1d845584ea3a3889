"""The replay.

It folds a task's history, and reruns its jobs on recorded data. The result of a job is not taken from the history. The
state's `handle` computes it again, with the present phases, policy, budgets and machines. Messages from outside
(answers, cancels, pauses) are taken as recorded.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from callboard.actors.commands import Approved, Dispatcher, MayChange, OwnFiles, Policy, Secrets, Toolbox
from callboard.actors.processing import AGENTS, CheckInputs, Services, agent_table, proposing
from callboard.actors.replay._compare import Difference, Differs, Replay
from callboard.actors.replay._doubles import NoLanes
from callboard.actors.replay._recorded_task import KnownTools, RecordedTask, recorded_moves
from callboard.actors.replay._scene import ReplayContext, Scene
from callboard.actors.root import book_usage, recover_task, task_result
from callboard.actors.runtime import Budgets, EventLoop, EventStream, VirtualClock
from callboard.actors.states import OnTheWay
from callboard.config import Settings, settings_in_force, text
from callboard.journal import MemoryJournal, Row
from callboard.messages import (
    Assign,
    Cancel,
    Event,
    Pause,
    Recovered,
    Resume,
    RoundEnding,
    SettingsError,
    SubtaskEnding,
    Task,
    TaskResult,
    agent_kind,
    with_results,
)
from callboard.models import NamedModels, TaskModels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from callboard.actors.processing import AgentSpec
    from callboard.messages import Outcome


STOP_SECONDS = 10.0


def replay_journal(
    journal: Path, task_id: str, settings: Settings | None = None, *, agents: Sequence[AgentSpec] = ()
) -> Replay:
    """Replay a task of a journal on its recorded data.

    The journal may be in use.

    Raises:
        UnknownTaskError: If the journal has no task of this id.
        JournalError: If it can't be read.
        SettingsError: As `replay`.
    """
    return replay(RecordedTask.load(journal, task_id), settings, agents=agents)


def replay(
    recording: RecordedTask,
    settings: Settings | None = None,
    *,
    otherwise: Settings | None = None,
    agents: Sequence[AgentSpec] = (),
) -> Replay:
    """Rerun a recorded task on its recorded answers and results.

    It needs no model and no surface, changes nothing outside of this process, and reads only the recording. Blocks.

    Args:
        recording: The task. If it is not over, the replay ends where the recording does.
        settings: The limits, policy and budgets to apply; by default those of the processes in which the task ran,
            each for its own part. Whether people are there to be asked and whether checks may be proposed is then
            taken from the recording.
        otherwise: The settings for a process that did not record its own, as older versions did not; by default the
            defaults and the environment's.
        agents: The kinds of agents of the program's own, as its supervisor had them.

    Raises:
        SettingsError: If another version wrote the settings in the recording, and this one can't read them; or if
            it has agents of a kind that is not in `agents`.
    """
    table = _known_agents(recording, agents)
    if settings is not None:
        settings = recording.attended(settings)
    unknown = recording.attended(settings or otherwise or Settings())
    recorded_lives = recording.lives if settings is None else ()
    lives = [settings_in_force(life.sections) if life is not None else None for life in recorded_lives]
    player = _Player(recording, unknown, lives, table)
    loop = EventLoop("callboard-replay")
    loop.start()
    try:
        return loop.submit(player.play()).result()
    finally:
        loop.stop(STOP_SECONDS)


class _Player:
    """One replay.

    It keeps a scene for each address. Runs on the event loop.
    """

    def __init__(
        self,
        recording: RecordedTask,
        settings: Settings,
        lives: Iterable[Settings | None],
        agents: Mapping[str, AgentSpec],
    ) -> None:
        """Store the settings of each process, in order.

        `settings` are for processes without any.
        """
        self._recording = recording
        self._settings = settings
        self._agents = agents
        self._lives = iter(lives)
        finals = {spec.machine.final for spec in agents.values()}
        self._moves = recorded_moves(recording.rows, finals) if recording.events else {}
        self._scenes: dict[str, Scene] = {}
        self._runs: dict[str, Scene] = {}
        self._rows: list[Row] = []
        table = proposing(agents, is_enabled=settings.system.propose_checks)
        known_tools = KnownTools(recording.rows)
        self._context = ReplayContext(recording.task.id, _services(settings, table), table, known_tools)
        self._context.services.stream.add_sink(lambda fact: self._context.emitted(fact.event()))

    async def play(self) -> Replay:
        """Replay the rows in their order."""
        outcome, difference = None, None
        try:
            for row in self._recording.earlier_rows:
                await self._receive(row, recompute=False)
            for row in self._recording.rows:
                await self._receive(row)
            for scene in self._scenes.values():
                scene.end()
            outcome = compare_outcome(self._recording.result, self._rows)
        except Differs as found:
            difference = found.difference
        return Replay(
            task=self._recording.task,
            transitions=tuple(self._context.transitions),
            jobs=self._context.jobs,
            taken=self._context.taken_count,
            outcome=outcome,
            difference=difference,
        )

    async def _receive(self, row: Row, *, recompute: bool = True) -> None:
        """Pass a row to its scene.

        `recompute` tells whether to recompute the results of jobs.
        """
        message = row.message
        if isinstance(message, Event):
            if row.run_id in self._runs:
                self._runs[row.run_id].keep_event(message)
            return
        if isinstance(message, Task | Recovered):
            self._take_up(next(self._lives, None) or self._settings)
        if isinstance(message, Task):
            recorded_answers = {"model": None, "routine": None}  # theirs are used
            self._context.services.take(message.model_copy(update=recorded_answers))
        new_row = row
        if isinstance(message, Assign) and message.token and not row.job:
            scene = self._scenes.setdefault(message.address, Scene(self._context, message.address))
            self._runs[message.run_id] = scene
            row = self._whole(row, message)
            self._context.services.budgets.share(message)
            scene.begin(row, self._moves.get((message.run_id, message.token)))
        elif row.run_id in self._runs:
            new_row = await self._passed(self._runs[row.run_id], row, recompute=recompute)
        elif not row.run_id and isinstance(message, Cancel | Pause | Resume):
            for scene in dict.fromkeys(self._runs.values()):
                scene.receive(row)
        if recompute:
            self._rows.append(new_row)

    def _whole(self, row: Row, assign: Assign) -> Row:
        """Restore the fields of a subtask that the journal leaves out.

        They come from its HostAgent.
        """
        host = self._scenes[assign.host].run if assign.host in self._scenes else None
        if host is None:
            return row
        complete = with_results(assign, host.subtasks, host.made)
        return Row(row.at, row.task_id, row.run_id, complete, row.job)

    def _take_up(self, settings: Settings) -> None:
        """Continue in the next process, as recovery does.

        If its settings are other ones, the earlier messages are folded, and their usage is booked, again under them.
        """
        context = self._context
        if settings == context.services.settings:
            return
        policy, budgets = Policy(settings.policy.all_rules, explain=settings.policy.explain), Budgets(settings.budget)
        recovered = recover_task(self._rows, 0.0)
        if recovered is not None:
            budgets.take(recovered.record.task)
            book_usage(recovered, budgets)
        agents = proposing(self._agents, is_enabled=settings.system.propose_checks)
        context.services = dataclasses.replace(
            context.services, settings=settings, policy=policy, budgets=budgets, agents=agents
        )
        for scene in self._scenes.values():
            scene.refold()

    async def _passed(self, scene: Scene, row: Row, *, recompute: bool) -> Row:
        if isinstance(row.message, OnTheWay):
            scene.note(row)
        elif row.job and recompute:
            return await scene.recompute(row)
        elif row.job:
            scene.fold(row)
        else:
            scene.receive(row)
        return row


def _known_agents(recording: RecordedTask, agents: Sequence[AgentSpec]) -> Mapping[str, AgentSpec]:
    table = agent_table(AGENTS, agents)
    assigns = (row.message for row in (*recording.earlier_rows, *recording.rows) if isinstance(row.message, Assign))
    for kind in (agent_kind(assign.address) for assign in assigns):
        if kind not in table:
            msg = f"the recording has agents of the kind {kind!r}, which does not ship: pass it in `agents`"
            raise SettingsError(msg)
    return table


def _services(settings: Settings, agents: Mapping[str, AgentSpec]) -> Services:
    """Make the services that all jobs share.

    None of them reaches out of this process.
    """
    clock, lanes = VirtualClock(), NoLanes()
    stream, secrets = EventStream(clock, kept=1, queue=1), Secrets({})
    return Services(
        settings=settings,
        models={},
        task_models=TaskModels({}, NamedModels(settings)),
        toolbox=Toolbox((), (), lanes),
        dispatcher=Dispatcher(stream, clock, secrets),
        policy=Policy(settings.policy.all_rules, explain=settings.policy.explain),
        approved=Approved(),
        may_change=MayChange(),
        own_files=OwnFiles(),
        check_inputs=CheckInputs({}),
        budgets=Budgets(settings.budget),
        lanes=lanes,
        stream=stream,
        journal=MemoryJournal(),
        clock=clock,
        secrets=secrets,
        prompts=dict.fromkeys(agents, ""),
        agents=agents,
    )


def compare_outcome(recorded: TaskResult | None, rows: Sequence[Row]) -> Outcome | None:
    """Compare the task's outcome with the recording.

    None if the recorded task did not end.

    Args:
        recorded: The recorded end of the task.
        rows: The task's rows without events, with the recomputed results.

    Raises:
        Differs: If it ends in another way.
    """
    recovered = recover_task([row for row in rows if not isinstance(row.message, TaskResult)], 0.0)
    if recorded is None or recovered is None:
        return None
    record = recovered.record
    if recovered.begun and record.stopping is None:
        return recorded.outcome  # crashes ended it: the outcome is not an agent's
    for ended in recovered.endings.values():
        match ended:
            case RoundEnding():
                record.end_round(ended)
            case SubtaskEnding():
                record.end_subtask(ended.result)
    result = task_result(record, 0.0)
    stopped = record.stopping is not None  # the results of an interrupted step are only in the record
    for what in ("outcome",) if stopped else ("outcome", "output", "artifacts"):
        expected, got = getattr(recorded, what), getattr(result, what)
        if expected != got:
            raise Differs(
                Difference(
                    run_id="",
                    address="",
                    step=0,
                    what=text(f"differs_task_{what}"),
                    expected=str(expected),
                    got=str(got),
                )
            )
    return result.outcome
