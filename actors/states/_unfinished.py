"""The progress of a step that a crash interrupted, from the journal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from callboard.messages import (
    Answered,
    CommandResult,
    Decided,
    Effect,
    Foreseen,
    Intent,
    Noted,
    Probe,
    ResultStatus,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

OnTheWay = Answered | Decided | Intent | Foreseen | Noted | CommandResult
"""The messages that a job journals before its step is done."""


def files_of(notes: Iterable[Foreseen]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the listed files of announced writes, and the new ones."""
    listed_notes = [note for note in notes if note.is_listed]
    new_paths = (note.path for note in listed_notes if not note.before)
    return tuple(dict.fromkeys(note.path for note in listed_notes)), tuple(dict.fromkeys(new_paths))


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """The progress of one step that is not done."""

    answers: tuple[Answered, ...] = ()
    """The model's answers so far, including those that were sent back to it."""
    decided: Decided | None = None
    results: tuple[CommandResult, ...] = ()
    """The results of the completed actions."""
    intent: Intent | None = None
    """The intent of the action in doubt: it was about to run, and its result is unknown."""
    foreseen: tuple[Foreseen, ...] = ()
    """The writes that the action in doubt announced."""
    earlier: tuple[Foreseen, ...] = ()
    """The writes that it announced before the crashes after which it was repeated."""
    probe: Probe | None = None
    """A person's answer about the action in doubt."""
    known: Intent | None = None
    """The last completed action that allows an observation to tell whether the surface is still as it left it."""
    wrote: tuple[Foreseen, ...] = ()
    """The writes that the action `known` announced."""

    @property
    def doubt(self) -> Intent | None:
        """The action with an unknown result.

        An action without an intent counts too, if it had announced a write.
        """
        if self.intent is not None or self.decided is None or not self.foreseen:
            return self.intent
        (action, *_) = self.decided.after(self.results)
        return Intent(call_id=self.foreseen[-1].call_id, tool=action.tool, arguments=action.arguments)

    @property
    def in_doubt(self) -> CommandResult | None:
        """The result of the action in doubt; None without one.

        None also if a person answered that the action was not done.
        """
        doubt = self.doubt if self.decided is not None else None  # else the intent came late, and the action never ran
        if doubt is None or self.probe is Probe.NOT_DONE:
            return None
        artifacts, made = files_of((*self.earlier, *self.foreseen))
        return CommandResult(
            call_id=doubt.call_id,
            tool=doubt.tool,
            status=ResultStatus.FAILURE,
            effect=Effect.ONCE,  # only such an action has an intent, or a file that it may have written
            arguments=doubt.arguments,
            error="was broken off: whether it was done is in doubt",
            artifacts=artifacts,
            made=made,
            in_doubt=True,
        )

    @property
    def ran(self) -> tuple[CommandResult, ...]:
        """The results with their arguments, which no finished step records."""
        actions = self.decided.actions if self.decided is not None else ()
        call_arguments = {action.call_id: action.arguments for action in actions}
        return tuple(
            result.model_copy(update={"arguments": call_arguments.get(result.call_id, {})}) for result in self.results
        )

    @property
    def done(self) -> tuple[CommandResult, ...]:
        """The results of the completed actions and of the one in doubt."""
        return self.ran if self.in_doubt is None else (*self.ran, self.in_doubt)

    @property
    def usage(self) -> Usage:
        """The step's usage so far.

        Answers that were sent back count as repairs once there is a decision.
        """
        resumed = self.decided is not None and self.decided.resumed
        return Usage(
            steps=0 if resumed else 1,
            model_calls=sum(not answer.replayed for answer in self.answers),
            replayed=sum(answer.replayed for answer in self.answers),
            missed=sum(answer.routine_miss is not None for answer in self.answers),
            input_tokens=sum(answer.input_tokens for answer in self.answers),
            output_tokens=sum(answer.output_tokens for answer in self.answers),
            commands=len(self.results),
            repairs=max(0, len(self.answers) - 1 - self.decided.decision.sent_back) if self.decided is not None else 0,
            cost=sum(answer.cost or 0.0 for answer in self.answers),
            unpriced_calls=sum(answer.cost is None for answer in self.answers),
        )

    def after(self, message: OnTheWay) -> Unfinished:
        """Return the progress after another journaled message."""
        match message:
            case Answered():
                return replace(self, answers=(*self.answers, message))
            case Decided():
                return replace(self, decided=message)
            case Intent():
                intent = self.intent
                earlier: tuple[Foreseen, ...] = ()
                if intent is not None and intent.call_id == message.call_id:  # a resumed call keeps its notes
                    message = message.model_copy(update={"noted": intent.noted})
                    earlier = (*self.earlier, *self.foreseen)
                return replace(self, intent=message, foreseen=(), earlier=earlier, probe=None)
            case Noted():
                return self._with_note(message)
            case Foreseen():
                return self._with_foreseen(message)
            case CommandResult():
                known_intent, wrote = self._known(message)
                results = (*self.results, message)
                return replace(
                    self,
                    results=results,
                    intent=None,
                    foreseen=(),
                    earlier=(),
                    probe=None,
                    known=known_intent,
                    wrote=wrote,
                )

    def _with_note(self, note: Noted) -> Unfinished:
        intent = self.intent
        if intent is None or intent.call_id != note.call_id:
            return self  # the note of a call that may be repeated, or that was given up
        return replace(self, intent=intent.model_copy(update={"noted": (*intent.noted, note.text)}))

    def _with_foreseen(self, note: Foreseen) -> Unfinished:
        if any(result.call_id == note.call_id for result in self.results):
            return self  # its call took too long and was given up
        earlier = (earlier_note for earlier_note in self.foreseen if earlier_note.path != note.path)
        return replace(self, foreseen=(*earlier, note))

    def _known(self, result: CommandResult) -> tuple[Intent | None, tuple[Foreseen, ...]]:
        """Return the next values of `known` and `wrote` after a result."""
        ran = self.doubt
        if ran is None or result.status is not ResultStatus.SUCCESS or not (ran.expected or self.foreseen):
            return self.known, self.wrote
        return ran, self.foreseen
