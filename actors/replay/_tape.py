"""A tape: the recorded data of one job.

The data is in the order of the job's requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.processing import CHANGED, GONE
from callboard.config import text
from callboard.messages import (
    Answered,
    ApprovalRequest,
    CallboardError,
    Captured,
    CommandResult,
    Decided,
    DoubtError,
    EventName,
    Foreseen,
    Held,
    Intent,
    Message,
    Observation,
    Outcome,
    OutOfBudgetError,
    Phase,
    Probe,
    Question,
    ResultStatus,
    StepDone,
    StepFailure,
    StepTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from callboard.actors.states import Run
    from callboard.messages import Event, RoutineMiss


UNWRITABLE = "can't be written down"
"""The journal's mark for a value that could not be serialized."""


class RecordedError(CallboardError):
    """A recorded failure, raised again."""


class NotRecorded(CallboardError):  # noqa: N818 - it is a finding: the replay asks for what was never asked
    """A job asks for data that was not recorded."""


@dataclass
class Tape:
    """The recorded inputs and the result of one replayed job.

    Belongs to one job.
    """

    run: Run
    """The run when the job began."""
    message: Message
    """The result of the job."""
    notes: Sequence[Message]
    """The notes of the job."""
    events: Sequence[Event]
    """The recorded events of the job."""
    missing: list[str] = field(default_factory=list)
    """Requests of the replay without recorded data."""
    emitted: list[Event] = field(default_factory=list)
    """The events of the replay."""
    done: int = 0
    """The number of actions of the step that have a result so far."""
    ruled: dict[str, JsonValue] | None = None
    """The recorded verdict on the action that the policy rules on."""
    answers: list[Answered] = field(default_factory=list)
    """The model's answers that were not replayed yet."""

    def __post_init__(self) -> None:
        self.answers = [note for note in self.notes if isinstance(note, Answered)]
        self._all_answers = len(self.answers)
        self._results = {note.call_id: note for note in self.notes if isinstance(note, CommandResult)}
        self._verdicts = [event.data for event in self.events if event.name is EventName.POLICY_DECIDED]
        self._reasons = [str(event.data["reason"]) for event in self.events if event.name is EventName.MODEL_REPAIRED]
        unfinished = self.run.unfinished
        if unfinished is not None and unfinished.decided is not None:
            self.done = len(unfinished.results) + (unfinished.doubt is not None and self.probe is Probe.DONE)
            self._all_answers += len(unfinished.answers)

    @property
    def outside(self) -> bool:
        """True if the result can't be recomputed.

        The step took too long, or its result could not be serialized.
        """
        match self.message:
            case StepFailure(outcome=Outcome.TIMED_OUT):
                return True
            case StepFailure(phase=None, causes=causes):
                return UNWRITABLE in causes[0].reason
            case _:
                return False

    @property
    def paused(self) -> bool:
        """True if the task was paused at this place.

        The place is after as many actions as have a result now.
        """
        result = self.message
        return isinstance(result, StepDone) and result.held_by is Held.PAUSE and self.done >= len(result.record.results)

    # Observations

    def observation(self) -> Observation | None:
        """Return the recorded observation.

        Raises:
            CallboardError: If looking had failed.
        """
        match self.message:
            case StepFailure(phase=Phase.DATA_COLLECTION):
                raise self.failure()
            case StepDone(record=record):
                return self._after_crash(record.observation)
            case ApprovalRequest() | Captured():
                return self.message.observation
        decided = next((note for note in self.notes if isinstance(note, Decided)), None)
        unfinished = self.run.unfinished
        decided = decided or (unfinished.decided if unfinished is not None else None)
        if decided is not None:
            return decided.observation
        # The observation of a step that ended before its decision was not stored; the last look is the nearest to it.
        return self.run.memory[-1].observation if self.run.memory else Observation()

    def _after_crash(self, observation: Observation) -> Observation:
        """Return an observation after a crash.

        The original was not stored. The cut records whether it was another look, or none.
        """
        unfinished, why = self.run.unfinished, self.skipped()
        if unfinished is None or unfinished.decided is None:
            return observation
        if why.startswith(GONE):
            return Observation(notes=(why.removeprefix(GONE),))
        return (
            observation.model_copy(update={"fingerprint": f"not {observation.fingerprint}"})
            if self.foreign
            else observation
        )

    # Answers of the model

    def sent_back(self) -> str:
        """Return why the current answer was sent back.

        Empty if it was accepted.
        """
        number = sum(event.name is EventName.MODEL_REPAIRED for event in self.emitted)
        if number < len(self._reasons):
            return self._reasons[number]
        last = number >= self._all_answers - 1
        return "" if self._reasons or (last and not self._invalid) else text("it_was_sent_back")

    @property
    def _invalid(self) -> bool:
        failed = isinstance(self.message, StepFailure) and self.message.phase is Phase.LLM_INTERACTION
        return failed and any(cause.exception == "InvalidAnswerError" for cause in self.message.causes)  # type: ignore[attr-defined]

    def no_answer(self) -> CallboardError:
        """Make the outcome of a missing further answer of the model."""
        match self.message:
            case Question(limit=limit) if limit is not None:
                return OutOfBudgetError(limit.node, limit.kind, 0, "as recorded")
            case StepFailure(phase=Phase.LLM_INTERACTION | None) if not self._invalid:
                return self.failure()
        return self.miss(text("model_asked_again"))

    # Actions

    def verdict(self, tool: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
        """Return the recorded verdict on an action.

        If there are several, return the next one.
        """
        text = json.dumps(dict(arguments), ensure_ascii=False)
        of_tool = [verdict for verdict in self._verdicts if verdict["tool"] == tool]
        same = [verdict for verdict in of_tool if text.startswith(str(verdict["arguments"]))]
        next_verdict = next(iter(same), None)
        if next_verdict is not None and len(same) > 1:
            self._verdicts.remove(next_verdict)
        return next_verdict

    def refused(self) -> str:
        """Return the error of the next action.

        It has one if its surface was too slow to run it; else the text is empty.
        """
        if not isinstance(self.message, StepDone) or self.done >= len(self.message.record.results):
            return ""
        result = self.message.record.results[self.done]
        never_ran = result.status is ResultStatus.FAILURE and result.call_id not in self._results
        return result.error if never_ran and not result.error.startswith("denied: ") else ""

    def skipped(self) -> str:
        """Return why the next action was skipped; empty if it was not."""
        if not isinstance(self.message, StepDone) or self.done >= len(self.message.record.results):
            return ""
        result = self.message.record.results[self.done]
        return result.error if result.status is ResultStatus.SKIPPED else ""

    def missed(self) -> RoutineMiss | None:
        """Return the next action's miss of its guard; None without one."""
        if not isinstance(self.message, StepDone) or self.done >= len(self.message.record.results):
            return None
        return self.message.record.results[self.done].missed

    @property
    def foreign(self) -> bool:
        """True if the next action was skipped because the surface had changed."""
        return CHANGED in self.skipped() or self.skipped().startswith(GONE)

    def result(self, call_id: str, tool: str) -> CommandResult:
        """Return the recorded result of a command.

        Raises:
            NotRecorded: If it was not run.
        """
        by_step = f"{self.run.assign.run_id}.{self.run.steps + 1}.{self.done}"  # version 1 named held actions like this
        result = self._results.get(call_id) or self._results.get(by_step)
        if result is None:
            raise self.miss(text("tool_run_now", tool=tool))
        self.done += 1
        return result

    def files(self, call_id: str) -> list[Path]:
        """Return the files that the recorded result of a call lists."""
        result = self._results.get(call_id)
        return [] if result is None else [Path(path) for path in result.artifacts]

    @property
    def probe(self) -> Probe:
        """The recorded finding about the action in doubt."""
        probes = [event.data["probe"] for event in self.events if event.name is EventName.COMMAND_IN_DOUBT]
        if probes:
            return Probe(str(probes[-1]))
        unfinished = self.run.unfinished
        call_id = unfinished.doubt.call_id if unfinished is not None and unfinished.doubt is not None else ""
        if any(isinstance(note, Intent | Foreseen) and note.call_id == call_id for note in self.notes):
            return Probe.NOT_DONE
        unknown = isinstance(self.message, Question) or (
            isinstance(self.message, StepFailure) and self.message.outcome is Outcome.FAILED
        )
        return Probe.UNKNOWN if unknown else Probe.DONE

    def probed(self, intent: Intent) -> Probe:
        """Return the finding about the action in doubt.

        Without one, return whether the surface was unchanged. Unchanged means equal to the state in which an earlier
        action had left it.
        """
        unfinished = self.run.unfinished
        doubt = unfinished.doubt if unfinished is not None and unfinished.probe is None else None
        if doubt is not None and doubt.call_id == intent.call_id:
            return self.probe
        return Probe.UNKNOWN if self.foreign else Probe.DONE

    # Failures

    def failed_at(self, phase: Phase) -> bool:
        """Return whether the job failed in a phase."""
        return isinstance(self.message, StepFailure) and self.message.phase is phase

    def failure(self) -> CallboardError:
        """Make the recorded failure."""
        if not isinstance(self.message, StepFailure):
            return self.miss(text("fails_now"))
        causes = self.message.causes
        reason = (causes[1] if len(causes) > 1 else causes[0]).reason
        match self.message.outcome:
            case Outcome.OUT_OF_BUDGET:
                return OutOfBudgetError("the record", "budget", 0, reason)
            case Outcome.TIMED_OUT:
                return StepTimeoutError(reason)
            case Outcome.FAILED:
                return DoubtError(reason)
            case _:
                return RecordedError(reason)

    def miss(self, what: str) -> NotRecorded:
        """Note a request without recorded data."""
        self.missing.append(what)
        return NotRecorded(what)
