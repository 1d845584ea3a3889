"""One page of HTML with the results of an eval set."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from callboard.messages import visible
from callboard.terminal._eval_report import cost_text, reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from callboard.terminal._eval_cells import CellResult
    from callboard.terminal._eval_report import EvalReport, ModelFigures, RateChange

_STYLE = """
:root{--ink:#1b1f24;--dim:#5b6470;--line:#d9dee4;--page:#fff;--good:#1a7f4b;--bad:#b42318;--faint:#f3f5f7}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#98a2ae;--line:#363d46;--page:#15181c;--good:#4cc38a;
--bad:#ff8a7a;--faint:#1e2329}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:70rem;margin:2rem auto;
padding:0 1.5rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}p{margin:.3rem 0}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.4rem .8rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--dim);font-weight:600;font-size:.85rem}
td,dd,summary{overflow-wrap:anywhere}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}
.run{display:inline-block;min-width:1.5em;text-align:center;font-weight:700;text-decoration:none}
details{border-bottom:1px solid var(--line);padding:.5rem 0}summary{cursor:pointer}
dl{display:grid;grid-template-columns:8rem 1fr;gap:.2rem 1rem;margin:.6rem 0 .4rem 1.1rem}dt{color:var(--dim)}
dd{margin:0}
.bar{position:relative;width:9rem;height:.6rem;margin-top:.4rem;background:var(--line)}
.bar i,.bar b{position:absolute;left:0;display:block}
.bar i{top:0;height:.6rem;background:var(--good)}.bar b{top:.25rem;height:.1rem;background:var(--ink)}
"""
_CLOSE = 1e-9


def page(report: EvalReport, requests: Mapping[str, str], changes: Sequence[RateChange], threshold: float = 0.0) -> str:
    """Write a page that needs no other file, and runs no script.

    Args:
        report: The results.
        requests: The request of each task, by its name.
        changes: The differences from an earlier report.
        threshold: The decrease of a rate that is still accepted.
    """
    parts = [_figures(report), _changes(changes, threshold), _tasks(report), _failures(report)]
    parts += [_details(report, requests), _not_run(report)]
    counted = f"{len(report.results)} runs of {len(report.tasks)} tasks"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(report.name)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{_text(report.name)}</h1><p class="dim">{counted}. A run passed if every check of its task was read back '
        f"and held.</p>{''.join(parts)}</body></html>\n"
    )


def _text(text: object) -> str:
    """Escape a text, and show invisible characters."""
    return html.escape(visible(str(text)))


def _table(head: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """Write a table.

    Each column has its title, and whether it has numbers. Cells are HTML.
    """
    marks = [' class="n"' if numbers else "" for _, numbers in head]
    titles = "".join(f"<th{mark}>{_text(title)}</th>" for mark, (title, _) in zip(marks, head, strict=True))
    lines = ["".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _figures(report: EvalReport) -> str:
    most = max((max(figures.pass_k) for figures in report.models), default=1)
    ks = sorted({k for figures in report.models for k in figures.pass_k if k in {2, most} and k > 1})
    head = [("model", False), ("passed", True), ("rate, with its 95 % interval", False)]
    head += [(f"pass^{k}", True) for k in ks]
    head += [(name, True) for name in ("steps", "tokens", "cost", "seconds", "errors")]
    rows = [
        [
            _text(figures.model),
            f"{figures.passed} of {figures.runs}",
            f"{figures.rate:.0%} <span class='dim'>({figures.low:.0%} to {figures.high:.0%})</span>{_bar(figures)}",
            *(f"{figures.pass_k[k]:.0%}" if k in figures.pass_k else "" for k in ks),
            f"{figures.steps:g}",
            f"{figures.tokens:,.0f}",
            cost_text(figures),
            f"{figures.seconds:.1f}",
            str(figures.apart),
        ]
        for figures in report.models
    ]
    notes = "Steps, tokens, cost and seconds are medians of a run; errors are runs that ended by one, or by a limit. "
    notes += "pass^k is the probability that k of k runs of a task pass. " if ks else ""
    notes += "+: some calls have no known price. " if any(figures.unpriced_calls for figures in report.models) else ""
    return f'<h2>Models</h2>{_table(head, rows)}<p class="dim">{notes}</p>'


def _bar(figures: ModelFigures) -> str:
    """Draw a rate as a bar, and its interval as a line."""
    low, width = 100 * figures.low, 100 * (figures.high - figures.low)
    rate = f'<i style="width:{100 * figures.rate:.1f}%"></i>'
    return f'<div class="bar">{rate}<b style="left:{low:.1f}%;width:{width:.1f}%"></b></div>'


def _changes(changes: Sequence[RateChange], threshold: float) -> str:
    if not changes:
        return ""
    head = [("model", False), ("before", True), ("now", True), ("change", True), ("tasks of both", True)]
    rows = [
        [
            _text(change.model),
            f"{change.before:.0%}",
            f"{change.now:.0%}",
            f'<span class="{"bad" if change.change < -threshold - _CLOSE else "good"}">{change.change:+.0%}</span>',
            str(change.tasks),
        ]
        for change in changes
    ]
    return f"<h2>Compared with the earlier run</h2>{_table(head, rows)}"


def _tasks(report: EvalReport) -> str:
    numbers = {id(result): number for number, result in enumerate(report.results)}
    models = [figures.model for figures in report.models]
    rows = [
        [
            _text(task),
            *(" ".join(_mark(result, numbers[id(result)]) for result in report.runs(task, model)) for model in models),
        ]
        for task in report.tasks
    ]
    return f"<h2>Tasks</h2>{_table([('task', False), *((model, False) for model in models)], rows)}"


def _mark(result: CellResult, number: int) -> str:
    seed = "" if result.seed is None else f" title='seed {result.seed}'"
    if result.passed:
        return f'<span class="run good"{seed}>✓</span>'
    return f'<a class="run bad" href="#run-{number}"{seed}>✗</a>'


def _failures(report: EvalReport) -> str:
    rows = [
        [_text(name), _text(figures.model), str(count)]
        for figures in report.models
        for name, count in figures.failures.items()
    ]
    if not rows:
        return ""
    return f"<h2>Failures by check</h2>{_table([('check', False), ('model', False), ('runs', True)], rows)}"


def _details(report: EvalReport, requests: Mapping[str, str]) -> str:
    failed = [(number, result) for number, result in enumerate(report.results) if not result.passed]
    if not failed:
        return ""
    runs = "".join(_run(number, result, requests.get(result.task, "")) for number, result in failed)
    return f"<h2>Runs that did not pass</h2>{runs}"


def _run(number: int, result: CellResult, request: str) -> str:
    seed = "" if result.seed is None else f", seed {result.seed}"
    facts = [("request", request), ("outcome", result.outcome.value.replace("_", " ")), ("because", result.reason)]
    facts += [
        (f"check {position}", f"{name}: {problem}")
        for position, (name, problem) in enumerate(result.failures.items(), 1)
    ]
    facts += [("answer", result.answer), ("used", f"{result.steps} steps, {result.tokens:,} tokens")]
    definitions = "".join(f"<dt>{_text(name)}</dt><dd>{_text(fact)}</dd>" for name, fact in facts if fact)
    title = f"{_text(result.task)}, {_text(result.model)}{seed}"
    why = _text("; ".join(reasons(result)))
    summary = f'<summary>{title}: <span class="bad">{why}</span></summary>'
    return f'<details id="run-{number}">{summary}<dl>{definitions}</dl></details>'


def _not_run(report: EvalReport) -> str:
    if not report.not_run:
        return ""
    rows = [[_text(cell), _text(reason)] for cell, reason in report.not_run.items()]
    return f"<h2>Not run</h2>{_table([('run', False), ('reason', False)], rows)}"
