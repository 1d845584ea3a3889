"""A tape: what was recorded of one job, in the order in which the job asks for it again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.processing import GONE, SOMEBODY
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
    StepFailed,
    StepTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from callboard.actors.states import Run
    from callboard.messages import Event


UNWRITABLE = "can't be written down"
"""How a journal says that a word could not be kept as it was."""


class RecordedError(CallboardError):
    """What failed when it was recorded fails again."""


class NotRecorded(CallboardError):  # noqa: N818 - it is a finding: the replay asks for what was never asked
    """A job asks for something that was not recorded."""


@dataclass
class Tape:
    """What one job was told by the world, and what it came back with. Belongs to one replayed job."""

    run: Run
    """As it was when the job began."""
    word: Message
    """What the job came back with."""
    notes: Sequence[Message]
    """What it noted on its way."""
    events: Sequence[Event]
    """What was told of it."""
    missing: list[str] = field(default_factory=list)
    """What the replay asked for, and was not recorded."""
    told: list[Event] = field(default_factory=list)
    """What the replay tells."""
    done: int = 0
    """How many actions of the step have a result by now."""
    ruled: dict[str, JsonValue] | None = None
    """The recorded verdict on the action that the policy is asked about."""
    answers: list[Answered] = field(default_factory=list)
    """The model's answers that were not given again yet."""

    def __post_init__(self) -> None:
        self.answers = [note for note in self.notes if isinstance(note, Answered)]
        self._all_answers = len(self.answers)
        self._results = {note.call_id: note for note in self.notes if isinstance(note, CommandResult)}
        self._verdicts = [event.data for event in self.events if event.name is EventName.POLICY_DECIDED]
        self._reasons = [str(event.data["reason"]) for event in self.events if event.name is EventName.MODEL_REPAIRED]
        left = self.run.unfinished
        if left is not None and left.decided is not None:
            self.done = len(left.results) + (left.doubt is not None and self.probe is Probe.DONE)
            self._all_answers += len(left.answers)

    @property
    def outside(self) -> bool:
        """Whether nobody can make the word again: the step took too long, or what it said could not be written down."""
        match self.word:
            case StepFailed(outcome=Outcome.TIMED_OUT):
                return True
            case StepFailed(phase=None, causes=causes):
                return UNWRITABLE in causes[0].reason
            case _:
                return False

    @property
    def paused(self) -> bool:
        """Whether the task was paused after as many actions as have a result by now."""
        word = self.word
        return isinstance(word, StepDone) and word.held_by is Held.PAUSE and self.done >= len(word.record.results)

    # What was seen

    def observation(self) -> Observation | None:
        """Give what was seen.

        Raises:
            CallboardError: If looking had failed.
        """
        match self.word:
            case StepFailed(phase=Phase.DATA_COLLECTION):
                raise self.failure()
            case StepDone(record=record):
                return self._found(record.observation)
            case ApprovalRequest() | Captured():
                return self.word.observation
        decided = next((note for note in self.notes if isinstance(note, Decided)), None)
        left = self.run.unfinished
        decided = decided or (left.decided if left is not None else None)
        if decided is not None:
            return decided.observation
        # Of a step that ended before its decision nobody kept what it saw; the last look is the nearest to it.
        return self.run.memory[-1].observation if self.run.memory else Observation()

    def _found(self, seen: Observation) -> Observation:
        """Give what was found after a crash: nobody kept it; that it was another look, or none, the cut tells."""
        left, why = self.run.unfinished, self.skipped()
        if left is None or left.decided is None:
            return seen
        if why.startswith(GONE):
            return Observation(notes=(why.removeprefix(GONE),))
        return seen.model_copy(update={"fingerprint": f"not {seen.fingerprint}"}) if self.foreign else seen

    # What the model said

    def sent_back(self) -> str:
        """Say why the answer that is being checked was sent back; empty if it counted."""
        number = sum(event.name is EventName.MODEL_REPAIRED for event in self.told)
        if number < len(self._reasons):
            return self._reasons[number]
        last = number >= self._all_answers - 1
        return "" if self._reasons or (last and not self._invalid) else "it was sent back"

    @property
    def _invalid(self) -> bool:
        failed = isinstance(self.word, StepFailed) and self.word.phase is Phase.LLM_INTERACTION
        return failed and any(cause.exception == "InvalidAnswerError" for cause in self.word.causes)  # type: ignore[attr-defined]

    def no_answer(self) -> CallboardError:
        """Make what happens where no further answer of the model was recorded."""
        match self.word:
            case Question(limit=limit) if limit is not None:
                return OutOfBudgetError(limit.node, limit.kind, 0, "as recorded")
            case StepFailed(phase=Phase.LLM_INTERACTION | None) if not self._invalid:
                return self.failure()
        return self.miss("the model is asked once more than it was")

    # What was done

    def verdict(self, tool: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
        """Give the recorded verdict on an action, the next one if there are several."""
        text = json.dumps(dict(arguments), ensure_ascii=False)
        of_tool = [said for said in self._verdicts if said["tool"] == tool]
        same = [said for said in of_tool if text.startswith(str(said["arguments"]))]
        found = next(iter(same), None)
        if found is not None and len(same) > 1:
            self._verdicts.remove(found)
        return found

    def refused(self) -> str:
        """Say how the next action failed without being run, its server being too slow; empty if it did not."""
        if not isinstance(self.word, StepDone) or self.done >= len(self.word.record.results):
            return ""
        result = self.word.record.results[self.done]
        never_ran = result.status is ResultStatus.FAILURE and result.call_id not in self._results
        return result.error if never_ran and not result.error.startswith("denied: ") else ""

    def skipped(self) -> str:
        """Say why the next action was skipped; empty if it was not."""
        if not isinstance(self.word, StepDone) or self.done >= len(self.word.record.results):
            return ""
        result = self.word.record.results[self.done]
        return result.error if result.status is ResultStatus.SKIPPED else ""

    @property
    def foreign(self) -> bool:
        """Whether the next action was skipped because the surface was not as the agent knew it."""
        return SOMEBODY in self.skipped() or self.skipped().startswith(GONE)

    def result(self, call_id: str, tool: str) -> CommandResult:
        """Give what came of a command.

        Raises:
            NotRecorded: If it was not run.
        """
        by_step = f"{self.run.assign.run_id}.{self.run.steps + 1}.{self.done}"  # so version 1 named held actions
        result = self._results.get(call_id) or self._results.get(by_step)
        if result is None:
            what = f"{tool} is run, and was not"
            raise self.miss(what)
        self.done += 1
        return result

    @property
    def probe(self) -> Probe:
        """What a look said of the action that was in doubt."""
        told = [event.data["probe"] for event in self.events if event.name is EventName.COMMAND_IN_DOUBT]
        if told:
            return Probe(str(told[-1]))
        left = self.run.unfinished
        call_id = left.doubt.call_id if left is not None and left.doubt is not None else ""
        if any(isinstance(note, Intent | Foreseen) and note.call_id == call_id for note in self.notes):
            return Probe.NOT_DONE
        unknown = isinstance(self.word, Question) or (
            isinstance(self.word, StepFailed) and self.word.outcome is Outcome.FAILED
        )
        return Probe.UNKNOWN if unknown else Probe.DONE

    def probed(self, intent: Intent) -> Probe:
        """Give what a look said of the action in doubt, or whether the surface was as an earlier one had left it."""
        left = self.run.unfinished
        doubt = left.doubt if left is not None and left.said is None else None
        if doubt is not None and doubt.call_id == intent.call_id:
            return self.probe
        return Probe.UNKNOWN if self.foreign else Probe.DONE

    # What went wrong

    def failed_at(self, phase: Phase) -> bool:
        """Say whether the job failed in a phase."""
        return isinstance(self.word, StepFailed) and self.word.phase is phase

    def failure(self) -> CallboardError:
        """Make the failure that was recorded."""
        if not isinstance(self.word, StepFailed):
            return self.miss("something fails that did not")
        causes = self.word.causes
        reason = (causes[1] if len(causes) > 1 else causes[0]).reason
        match self.word.outcome:
            case Outcome.OUT_OF_BUDGET:
                return OutOfBudgetError("the record", "budget", 0, reason)
            case Outcome.TIMED_OUT:
                return StepTimeoutError(reason)
            case Outcome.FAILED:
                return DoubtError(reason)
            case _:
                return RecordedError(reason)

    def miss(self, what: str) -> NotRecorded:
        """Note that something was asked for that was not recorded."""
        self.missing.append(what)
        return NotRecorded(what)
