"""How far a step came that a crash broke off: what is known of it from the journal."""

from __future__ import annotations

from dataclasses import dataclass, replace

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

OnTheWay = Answered | Decided | Intent | Foreseen | Noted | CommandResult
"""What a job notes before its step is done."""


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """One step on its way."""

    answers: tuple[Answered, ...] = ()
    """The model's answers so far, those that were sent back included."""
    decided: Decided | None = None
    results: tuple[CommandResult, ...] = ()
    """Of the actions that ran."""
    intent: Intent | None = None
    """The action that is in doubt: it was about to run, and nobody knows what came of it."""
    foreseen: tuple[Foreseen, ...] = ()
    """What that action was about to write."""
    said: Probe | None = None
    """What a person said of it."""
    known: Intent | None = None
    """The last action that ran and of which a look can tell whether the surface is as it left it."""
    wrote: tuple[Foreseen, ...] = ()
    """What that one was about to write."""

    @property
    def doubt(self) -> Intent | None:
        """The action of which nobody knows what came of it: one without an intent, too, if it was about to write."""
        if self.intent is not None or self.decided is None or not self.foreseen:
            return self.intent
        (action, *_) = self.decided.after(self.results)
        return Intent(call_id=self.foreseen[-1].call_id, tool=action.tool, arguments=action.arguments)

    @property
    def in_doubt(self) -> CommandResult | None:
        """What is known of the action in doubt, unless a person has said that it was not done."""
        doubt = self.doubt if self.decided is not None else None  # else the intent came late, and nothing was done
        if doubt is None or self.said is Probe.NOT_DONE:
            return None
        return CommandResult(
            call_id=doubt.call_id,
            tool=doubt.tool,
            status=ResultStatus.FAILURE,
            effect=Effect.ONCE,  # of another one there would be no intent, or a file that it may have written
            arguments=doubt.arguments,
            error="was broken off: whether it was done is in doubt",
            artifacts=tuple(note.path for note in self.foreseen),
            made=tuple(note.path for note in self.foreseen if not note.before),
            in_doubt=True,
        )

    @property
    def ran(self) -> tuple[CommandResult, ...]:
        """The results with their arguments, since no finished step tells these."""
        actions = self.decided.actions if self.decided is not None else ()
        given = {action.call_id: action.arguments for action in actions}
        return tuple(result.model_copy(update={"arguments": given.get(result.call_id, {})}) for result in self.results)

    @property
    def done(self) -> tuple[CommandResult, ...]:
        """What it had done, and what it may have done."""
        return self.ran if self.in_doubt is None else (*self.ran, self.in_doubt)

    @property
    def usage(self) -> Usage:
        """What it had used; answers that were sent back count as repairs once there is a decision."""
        resumed = self.decided is not None and self.decided.resumed
        return Usage(
            steps=0 if resumed else 1,
            model_calls=len(self.answers),
            input_tokens=sum(answer.input_tokens for answer in self.answers),
            output_tokens=sum(answer.output_tokens for answer in self.answers),
            commands=len(self.results),
            repairs=max(0, len(self.answers) - 1 - self.decided.decision.sent_back) if self.decided is not None else 0,
            cost=sum(answer.cost or 0.0 for answer in self.answers),
            unpriced_calls=sum(answer.cost is None for answer in self.answers),
        )

    def after(self, message: OnTheWay) -> Unfinished:
        """Make what follows a note."""
        match message:
            case Answered():
                return replace(self, answers=(*self.answers, message))
            case Decided():
                return replace(self, decided=message)
            case Intent():
                before = self.intent
                if before is not None and before.call_id == message.call_id:  # the call goes on with what it had noted
                    message = message.model_copy(update={"noted": before.noted})
                return replace(self, intent=message, foreseen=(), said=None)
            case Noted():
                return self._with_note(message)
            case Foreseen():
                return self._with_foreseen(message)
            case CommandResult():
                known, wrote = self._known(message)
                results = (*self.results, message)
                return replace(self, results=results, intent=None, foreseen=(), said=None, known=known, wrote=wrote)

    def _with_note(self, note: Noted) -> Unfinished:
        intent = self.intent
        if intent is None or intent.call_id != note.call_id:
            return self  # of a call that may be repeated, or that nobody awaited any more
        return replace(self, intent=intent.model_copy(update={"noted": (*intent.noted, note.text)}))

    def _with_foreseen(self, note: Foreseen) -> Unfinished:
        if any(result.call_id == note.call_id for result in self.results):
            return self  # its call took too long, and nobody awaited it any more
        others = (each for each in self.foreseen if each.path != note.path)
        return replace(self, foreseen=(*others, note))

    def _known(self, result: CommandResult) -> tuple[Intent | None, tuple[Foreseen, ...]]:
        """Give the action by which the surface can be known once there is a result, and what that one was to write."""
        ran = self.doubt
        if ran is None or result.status is not ResultStatus.SUCCESS or not (ran.expected or self.foreseen):
            return self.known, self.wrote
        return ran, self.foreseen
