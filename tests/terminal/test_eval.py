"""`callboard eval`: sets of tasks, models and seeds, and their figures."""

from __future__ import annotations

import html.parser
import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

import forks
from callboard import Outcome, TaskResult
from callboard.messages import JudgeResult
from callboard.terminal import WORSE, Attendance
from callboard.terminal._eval_cells import ANSWER, Cell, CellResult
from callboard.terminal._eval_page import page
from callboard.terminal._eval_report import EvalReport, differences, pass_k, wilson
from callboard.terminal._eval_runner import EvalRunner, NotRun
from callboard.terminal._eval_set import LoadedSet
from local_provider import LocalProvider
from support import PATIENCE

Call = Callable[..., Result]
CREATE = {"Actions": [{"function": "create_document", "arguments": {"path": "report.xlsx"}}], "Status": "CONTINUE"}
DONE = {"Status": "FINISH", "Comment": "There are 11 of them."}
SCRIPTS = {"honest": [CREATE, DONE], "lying": [DONE] * 6, "short": [CREATE]}
MADE = {"name": "the report is there", "file": "report.xlsx"}


@pytest.fixture
def write(here: Path) -> Callable[..., Path]:
    """Write an eval set of one or more tasks, and scripts in place of models."""

    def make(*tasks: dict[str, Any], **content: Any) -> Path:
        for name, answers in SCRIPTS.items():
            (here / f"{name}.yaml").write_text(yaml.safe_dump({"host": answers}), encoding="utf-8")
        entries = tasks or ({"name": "make", "task": {"request": "Make the report", "checks": [MADE]}},)
        models = {"models": {"honest": "scripted:honest.yaml"}}
        path = here / "office.yaml"
        path.write_text(yaml.safe_dump({**models, "tasks": [*entries], **content}), encoding="utf-8")
        return path

    return make


def figures(result: Result) -> dict[str, Any]:
    """Give the figures of each model of a call with --json."""
    return {each["model"]: each for each in json.loads(result.stdout)["models"]}


def result_of(**fields: Any) -> CellResult:
    given = {"task": "a", "model": "m", "passed": True, "outcome": Outcome.FINISHED, **fields}
    return CellResult(**given)


# Runs


def test_a_new_project_has_an_eval_set_that_passes(call: Call, here: Path) -> None:
    assert call("init", "mine").exit_code == 0
    before = {path: path.read_bytes() for path in (here / "mine").rglob("*") if path.is_file()}
    result = call("eval", "mine")
    assert result.exit_code == 0, result.output
    assert "3 of 3" in result.stdout
    assert {path: path.read_bytes() for path in (here / "mine").rglob("*") if path.is_file()} == before
    journals = sorted(path.parent.name for path in (here / "evals/mine/runs/mine").rglob("journal.db"))
    assert journals == ["1", "2", "3"]
    assert call("show", "task", "evals/mine/runs/mine/own-models/1").exit_code == 0


def test_a_lie_does_not_pass_and_is_counted_by_its_check(call: Call, write: Callable[..., Path]) -> None:
    path = write(models={"honest": "scripted:honest.yaml", "lying": "scripted:lying.yaml"}, seeds=2)
    result = call("eval", path, "--json")
    assert result.exit_code == 0, result.output
    honest, lying = figures(result)["honest"], figures(result)["lying"]
    assert (honest["passed"], honest["rate"], honest["pass_k"]) == (2, 1.0, {"1": 1.0, "2": 1.0})
    assert (lying["passed"], lying["failures"], lying["outcomes"]) == (0, {"the report is there": 2}, {"failed": 2})


def test_a_run_with_a_result_is_not_run_again_unless_asked(call: Call, here: Path, write: Callable[..., Path]) -> None:
    path = write(models={"short": "scripted:short.yaml", "honest": "scripted:honest.yaml"})
    assert call("eval", path).exit_code == 0
    made = {file: file.stat().st_ino for file in here.rglob("journal.db")}
    again = call("eval", path)
    assert "2 have a result already" in again.stdout
    assert {file: file.stat().st_ino for file in here.rglob("journal.db")} == made
    errors = call("eval", path, "--again", "errors")
    assert "1 have a result already" in errors.stdout
    assert "failed  make, short" in errors.stdout
    assert "already" not in call("eval", path, "--again", "all").stdout


def test_a_set_that_changed_is_refused_instead_of_mixed(call: Call, here: Path, write: Callable[..., Path]) -> None:
    (here / "a.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    task = {"name": "make", "documents": "a.csv", "task": {"request": "Make it", "checks": [MADE]}}
    path = write(task)
    assert call("eval", path).exit_code == 0
    (here / "a.csv").write_text("a,b\n1,3\n", encoding="utf-8")
    result = call("eval", path)
    assert result.exit_code == 2
    assert "is of another version of the set" in result.stderr
    assert call("eval", path, "--again", "all").exit_code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_continues_from_its_journal(
    call: Call, here: Path, write: Callable[..., Path], number: int
) -> None:
    late = {"file": "late.csv", "within": 3 * PATIENCE}
    path = write({"name": "make", "task": {"request": "Make it", "checks": [MADE, late]}})
    workspace = here / "evals/office/runs/make/honest/run/workspace"
    command = [sys.executable, "-m", "callboard", "eval", str(path)]
    with forks.Program(command, cwd=here) as program:
        end = time.monotonic() + PATIENCE
        while not (workspace / "report.xlsx").is_file() and time.monotonic() < end:
            time.sleep(0.02)
        program.send_signal(number)
        assert program.wait(PATIENCE) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    (workspace / "late.csv").write_text("a\n1\n", encoding="utf-8")
    result = call("eval", path, "--json")
    assert result.exit_code == 0, result.output
    (run,) = json.loads(result.stdout)["results"]
    assert (run["passed"], run["steps"]) == (True, 2)


def test_runs_are_side_by_side_within_the_limit(here: Path, write: Callable[..., Path]) -> None:
    task = {"name": "make", "task": {"request": "Make it", "checks": [{"program": "meet"}]}}
    loaded = LoadedSet.load(write(task, seeds=2))
    barrier = threading.Barrier(2)
    cells = [Cell(loaded.tasks[0], "honest", loaded.models["honest"], seed, here / "runs") for seed in (1, 2)]
    programs = {"meet": lambda: barrier.wait(PATIENCE) >= 0}
    runner = EvalRunner(cells, Attendance(absent="test"), at_once=2, programs=programs)
    assert [ended.passed for ended in runner.results() if isinstance(ended, CellResult)] == [True, True]


def test_no_run_starts_after_the_limit_of_the_cost(here: Path, write: Callable[..., Path]) -> None:
    loaded = LoadedSet.load(write())
    cells = [Cell(loaded.tasks[0], "honest", loaded.models["honest"], None, here / "runs")]
    runner = EvalRunner(cells, Attendance(absent="test"), cost=1.0)
    runner.spent = 1.0
    assert [type(ended) for ended in runner.results()] == [NotRun]
    assert not (here / "runs").exists()


@pytest.mark.parametrize(("options", "passed"), [((), 0), (("--yes",), 1)])
def test_approvals_are_rejected_without_yes(
    call: Call, write: Callable[..., Path], options: tuple[str, ...], passed: int
) -> None:
    path = write(settings={"policy": {"rules": [{"verdict": "approve", "tool": "create_document"}]}})
    assert figures(call("eval", path, "--json", *options))["honest"]["passed"] == passed


@pytest.mark.parametrize(("pattern", "passed"), [(r"^\D*11\D*$", True), (r"\b12\b", False)])
def test_an_answer_in_words_is_compared(call: Call, write: Callable[..., Path], pattern: str, passed: bool) -> None:
    path = write({"name": "count", "answer": pattern, "task": {"request": "How many?", "checks": [MADE]}})
    result = figures(call("eval", path, "--json"))["honest"]
    assert (result["passed"], [*result["failures"]]) == (int(passed), [] if passed else [ANSWER])


def test_a_folder_of_folders_is_a_set(call: Call, here: Path, folder: Callable[..., Path]) -> None:
    task = yaml.safe_dump({"request": "Make it", "checks": [MADE]})
    job = folder(CREATE, DONE, files={"task.yaml": task})
    result = call("eval", job.parent, "--seeds", "2", "--json")
    assert (result.exit_code, figures(result)["own models"]["passed"]) == (0, 2), result.output


def test_a_model_of_the_call_replaces_those_of_the_set(call: Call, write: Callable[..., Path]) -> None:
    result = call("eval", write(), "--model", "scripted:lying.yaml", "--json")
    assert [(name, each["passed"]) for name, each in figures(result).items()] == [("scripted:lying.yaml", 0)]


def test_a_seed_is_set_for_the_providers_of_the_models(here: Path, write: Callable[..., Path]) -> None:
    providers = {"local": {"url": "http://127.0.0.1:1/v1", "fallbacks": ["spare:x"]}, "spare": {"url": "http://b/v1"}}
    loaded = LoadedSet.load(write(settings={"providers": {**providers, "other": {"url": "http://c/v1"}}}))
    kinds = {"host": "local:model", "app": "scripted:a.yaml"}
    settings = Cell(loaded.tasks[0], "m", kinds, 7, here).settings()
    assert {name: each.get("seed") for name, each in settings["providers"].items()} == {
        "local": 7,
        "spare": 7,
        "other": None,
    }


def test_a_live_model_gets_the_seed_and_its_tokens_are_counted(
    call: Call, write: Callable[..., Path], provider: LocalProvider
) -> None:
    for answer in 2 * (CREATE, DONE):
        provider.says(answer)
    local = {"url": provider.url, "input_price": 1, "output_price": 1}
    path = write(models={"live": {"host": "local:model"}}, seeds=[5, 6], settings={"providers": {"local": local}})
    result = call("eval", path, "--json")
    live = figures(result)["live"]
    assert [request.get("seed") for request in provider.requests] == [5, 5, 6, 6]
    assert (live["passed"], live["tokens"]) == (2, 1460)
    assert live["cost"] == pytest.approx(0.00146)


# Comparison


@pytest.mark.parametrize(("threshold", "code"), [("0", WORSE), ("0.4", WORSE), ("0.6", 0)])
def test_a_lower_pass_rate_than_before_has_an_exit_code(
    call: Call, here: Path, write: Callable[..., Path], threshold: str, code: int
) -> None:
    results = [result_of(task="make", model="lying", seed=1), result_of(task="make", model="lying", passed=False)]
    before = here / "before.json"
    before.write_text(EvalReport.of("office", results, {}).model_dump_json(), encoding="utf-8")
    path = write(models={"lying": "scripted:lying.yaml"})
    result = call("eval", path, "--against", before, "--threshold", threshold)
    assert result.exit_code == code, result.output
    assert "-50% lying: 50% before, 0% now, in 1 task of both" in result.stdout


def test_a_report_without_a_common_model_can_not_be_compared(
    call: Call, here: Path, write: Callable[..., Path]
) -> None:
    before = here / "before.json"
    before.write_text(EvalReport.of("x", [result_of(model="other")], {}).model_dump_json(), encoding="utf-8")
    result = call("eval", write(), "--against", before)
    assert (result.exit_code, "nothing can be compared" in result.stderr) == (2, True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}'])
def test_a_file_that_is_no_report_is_refused_before_a_run(
    call: Call, here: Path, write: Callable[..., Path], text: str
) -> None:
    (here / "before.json").write_text(text, encoding="utf-8")
    result = call("eval", write(), "--against", "before.json")
    assert (result.exit_code, "before.json: is no report" in result.stderr) == (2, True)
    assert not (here / "evals").exists()


# Figures


def test_pass_k_is_the_unbiased_estimate_of_k_passes_in_a_row() -> None:
    results = [result_of(passed=number < 3, seed=number) for number in range(4)]
    assert pass_k(results) == {1: 0.75, 2: 0.5, 3: 0.25, 4: 0.0}
    assert pass_k([*results, result_of(task="b")]) == {1: 0.875}


def test_the_interval_of_a_rate_is_wilsons() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.23659, 0.76341), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-4)


# Mistakes

TASK = {"name": "a", "task": {"request": "x", "checks": [MADE]}}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"tasks": [{"name": "a", "task": {"request": "x"}}]}, "tasks.0: the task has no checks"),
        ({"tasks": [{**TASK, "task": {**TASK["task"], "dry_run": True}}]}, "tasks.0: dry_run"),
        ({"tasks": [{"name": "a"}]}, "tasks.0: has no task: give exactly one of folder, file and task"),
        ({"tasks": [{"task": TASK["task"]}]}, "tasks.0: has a task without a `name`"),
        ({"tasks": [{**TASK, "document": "a"}]}, "tasks.0.document: unknown key; did you mean 'documents'?"),
        ({"tasks": [{**TASK, "documents": "no.csv"}]}, "no.csv: there is no such file"),
        ({"tasks": [{**TASK, "documents": ["honest.yaml", "./Honest.yaml"]}]}, "two of them are called"),
        ({"tasks": [TASK], "settings": {"documents": {"workspace": "/srv"}}, "models": "scripted:honest.yaml"}, "/srv"),
        ({"tasks": [{"folder": "nowhere"}]}, "nowhere: there is no such folder"),
        ({"tasks": [{"file": "nowhere.yaml"}]}, "nowhere.yaml: there is no such file"),
        ({"tasks": [TASK, {**TASK, "name": "A"}]}, "tasks: 'a' and 'A' would share a folder"),
        ({"tasks": [{**TASK, "answer": "(?=x)"}]}, "tasks.0.answer: is not a regular expression"),
        ({"tasks": []}, "tasks: is empty"),
        ({"task": []}, "is no eval set: it has no `tasks`"),
        ({"tasks": [TASK], "seeds": 0}, "seeds: is 0: give a number from 1 to 1000"),
        ({"tasks": [TASK], "seeds": True}, "seeds: "),
        ({"tasks": [TASK], "seeds": [7, 7]}, "seeds: has a seed twice"),
        (
            {
                "tasks": [TASK],
                "models": "scripted:honest.yaml",
                "settings": {"shells": {"box": {"cwd": "/srv", "isolated": False}}},
            },
            "shells.box.cwd: /srv is outside the copy",
        ),
        ({"tasks": [TASK], "sedes": 3}, "sedes: unknown key; did you mean 'seeds'?"),
        ({"tasks": [TASK]}, "no model is named"),
        ({"tasks": [TASK], "models": "gpt-5"}, "models.host: 'gpt-5' is not a known model"),
        ({"tasks": [TASK], "models": {"m": {"hots": "scripted:x"}}}, "hots"),
        ({"tasks": [TASK], "models": "scripted:nowhere.yaml"}, "nowhere.yaml"),
        ({"tasks": [TASK], "models": "scripted:honest.yaml", "settings": {"limit": {}}}, "limit"),
        ({"tasks": [{**TASK, "task": {"request": "x", "checks": [{"fiel": "a"}]}}]}, "tasks.0.task.checks.0.fiel"),
    ],
)
def test_mistake_in_a_set_is_reported_before_anything_runs(
    call: Call, here: Path, write: Callable[..., Path], content: dict[str, Any], told: str
) -> None:
    path = write()
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    result = call("eval", path)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert not (here / "evals").exists()


def test_models_that_would_share_a_folder_are_refused(call: Call, here: Path, write: Callable[..., Path]) -> None:
    path = write()
    result = call("eval", path, "--model", "scripted:m/a.yaml", "--model", "scripted:m-a.yaml")
    assert (result.exit_code, "would share a folder" in result.stderr) == (2, True)
    assert not (here / "evals").exists()


def test_a_result_of_another_script_is_refused(call: Call, here: Path, write: Callable[..., Path]) -> None:
    path = write()
    assert call("eval", path).exit_code == 0
    (here / "honest.yaml").write_text((here / "lying.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    result = call("eval", path)
    assert (result.exit_code, "another version" in " ".join(result.stderr.split())) == (2, True)


def test_a_judges_no_is_the_reason_of_a_failure(here: Path, write: Callable[..., Path]) -> None:
    loaded = LoadedSet.load(write())
    cell = Cell(loaded.tasks[0], "honest", loaded.models["honest"], None, here / "runs")
    judged = JudgeResult(question="Is it there?", answer="no", reason="It is empty.")
    result = TaskResult(task_id="t", outcome=Outcome.FAILED, judged=(judged,))
    assert CellResult.of(cell, result).failures == {"the judge": "says no to 'Is it there?': no, It is empty."}


def test_each_task_counts_the_same_in_a_comparison() -> None:
    def report(*passed: int) -> EvalReport:
        results = [result_of(passed=False, task="b", seed=seed) for seed in range(1, 11)]
        results += [result_of(passed=bool(one), seed=seed) for seed, one in enumerate(passed, 1)]
        return EvalReport.of("x", results, {})

    (change,) = differences(report(1, 1, 1, 1, 0, 0, 0, 0, 0, 0), report(1, 1))
    assert (change.before, change.now) == (0.5, 0.2)


def test_a_run_works_on_copies_only(
    call: Call, here: Path, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = yaml.safe_dump({"request": "Make it", "checks": [MADE]})
    job = folder(CREATE, DONE, files={"task.yaml": task}, documents={"workspace": str(here.parent / "job/workspace")})
    result = call("eval", job.parent)
    assert (result.exit_code, "outside the copy" in result.stderr) == (2, True)
    settings = yaml.safe_load((job / "callboard.yaml").read_text(encoding="utf-8"))
    (job / "callboard.yaml").write_text(yaml.safe_dump({**settings, "documents": {}}), encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_DOCUMENTS__WORKSPACE", str(job / "workspace"))
    call("eval", job.parent)
    assert list((job / "workspace").iterdir()) == []


def test_a_page_for_a_missing_folder_is_refused_before_a_run(
    call: Call, here: Path, write: Callable[..., Path]
) -> None:
    result = call("eval", write(), "--html", "no/page.html")
    assert (result.exit_code, "there is no folder no" in result.stderr) == (2, True)
    assert not (here / "evals").exists()


def test_a_folder_that_is_no_run_is_never_removed(call: Call, here: Path, write: Callable[..., Path]) -> None:
    other = here / "out/runs/make/honest/run/mine.txt"
    other.parent.mkdir(parents=True)
    other.touch()
    result = call("eval", write(), "--output", "out", "--again", "all")
    assert (result.exit_code, other.is_file()) == (2, True)


# The page


class _Page(html.parser.HTMLParser):
    """Collects elements, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in {"href", "src"}}

    def handle_data(self, data: str) -> None:
        self.text += data


EVIL = "</style></title><script>alert(1)</script><img src=x onerror='alert(2)'>\" onclick=\"a()\x1b[2J\u202e&amp;"


def test_texts_of_others_are_no_part_of_the_page(call: Call, here: Path, write: Callable[..., Path]) -> None:
    check = {"name": EVIL, "file": "no.xlsx"}
    task = {"name": EVIL, "task": {"request": EVIL, "checks": [check]}}
    lying = {"host": [{"Status": "FINISH", "Comment": EVIL}] * 6}
    path = write(task, models={f"m{EVIL}": "scripted:evil.yaml"})
    (here / "evil.yaml").write_text(yaml.safe_dump(lying), encoding="utf-8")
    result = call("eval", path, "--html", "page.html")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    text = (here / "page.html").read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert "\u202e" not in text
    found = _Page()
    found.feed(text)
    assert not found.elements & {"script", "img", "link", "iframe", "object", "svg", "form", "base"}
    assert {name for name in found.attributes if name.startswith("on")} == set()
    assert all(link.startswith("#run-") for link in found.links)
    assert found.text.count("<script>alert(1)</script>") >= 5


def test_the_page_shows_each_run_and_failure_and_needs_no_other_file() -> None:
    failed = {"passed": False, "failures": {"the sum": "found 3"}, "answer": "Done."}
    report = EvalReport.of("office", [result_of(seed=1), result_of(seed=2, **failed)], {"b, m": "interrupted"})
    text = page(report, {"a": "Add it up"}, [])
    assert "http" not in text.replace("http-equiv", "")
    for told in ("1 of 2", "50%", "the sum", "found 3", "Add it up", "interrupted", "a, m, seed 2"):
        assert told in text
