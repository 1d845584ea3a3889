"""The current day's usage in the journal, by task."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.root._recovery import recover_task, used_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from callboard.journal import JournalFile, Row
    from callboard.messages import Timestamp


class DayUsage(NamedTuple):
    """A task's usage since the day began."""

    labels: Mapping[str, str]
    """The task's labels."""
    used: Mapping[str, float]
    """The amounts, by kind of budget."""
    unpriced: bool
    """Whether it includes a call of unknown price."""


def usage_since(file: JournalFile, began: Timestamp) -> Iterator[DayUsage]:
    """Read the usage of each task since a time.

    A task that began and ended after that time has it in its result. All rows of the others are read.

    Raises:
        JournalDamagedError: If a row can't be read; the message names it.
    """
    for task, ended in file.tasks_since(began):
        if ended is not None:
            usage = ended.usage
            tokens = usage.input_tokens + usage.output_tokens
            used = {"steps": usage.steps, "model_calls": usage.model_calls, "tokens": tokens, "cost": usage.cost}
            used["rounds"] = ended.rounds if task.target is None else 0  # only HostAgents' rounds count
            yield DayUsage(task.labels, used, usage.unpriced_calls > 0)
            continue
        rows = tuple(file.rows(task.id))
        total, old_amounts = _amounts(rows), _amounts([row for row in rows if row.at < began])
        used = {kind: amount - old_amounts[kind] for kind, amount in total.items()}
        yield DayUsage(task.labels, used, used.pop("unpriced", 0) > 0)


def _amounts(rows: Sequence[Row]) -> defaultdict[str, float]:
    """Add up the usage in a task's first rows.

    The kind `unpriced` is the number of calls of unknown price.
    """
    total: defaultdict[str, float] = defaultdict(float)
    recovered = recover_task(rows, 0.0)
    if recovered is None:
        return total
    answers = [answer for run in recovered.answers.values() for answer in run.values()]
    for used in (*(used for _, used in used_by(recovered)), *(answer.used for answer in answers)):
        for kind, amount in used.items():
            total[kind] += amount
    total["unpriced"] += sum(answer.cost is None for answer in answers)
    total["unpriced"] += sum(usage.unpriced_calls for usage in recovered.used.values())
    return total
