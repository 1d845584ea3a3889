"""The model that plays a script: the due answer, its references, and the error when it can't go on."""

from __future__ import annotations

import asyncio
import threading

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from callboard.messages import AgentKind, CommandResult, ResultStatus, ScriptError
from callboard.models import ScriptedModel

APP = "app/excel/book.xlsx"


def play(answers, request):
    return asyncio.run(ScriptedModel(answers, "night.yaml").answer(request)).content


def refused(answers, request) -> str:
    with pytest.raises(ScriptError) as info:
        play(answers, request)
    return str(info.value)


def resolved(value, request):
    return play({APP: [{"Result": value}]}, request)["Result"]


def test_call_number_selects_the_answer(asks):
    script = {APP: [{"Status": "CONTINUE"}, {"Status": "FINISH"}]}
    assert [play(script, asks(call=call)) for call in (2, 1, 2)] == [
        {"Status": "FINISH"},
        {"Status": "CONTINUE"},
        {"Status": "FINISH"},
    ]


def test_every_host_agent_plays_the_answers_of_host(asks):
    request = asks(kind=AgentKind.HOST, address="host/t")
    assert play({"host": [{"Status": "FINISH"}]}, request) == {"Status": "FINISH"}


def test_one_host_agents_own_answers_come_before_those_of_host(asks):
    script = {"host": [{"Status": "FINISH"}], "host/t": [{"Status": "FAIL"}]}
    assert play(script, asks(kind=AgentKind.HOST, address="host/t")) == {"Status": "FAIL"}
    assert play(script, asks(kind=AgentKind.HOST, address="host/u")) == {"Status": "FINISH"}


def test_host_serves_no_other_agent(asks):
    assert APP in refused({"host": [{"Status": "FINISH"}]}, asks())


def test_a_script_plays_the_same_for_many_agents_at_a_time(asks):
    model = ScriptedModel({APP: [{"Result": "${request}"}]})
    said: dict[int, object] = {}

    def ask(number: int) -> None:
        said[number] = asyncio.run(model.answer(asks(request=f"request {number}"))).content["Result"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: f"request {number}" for number in range(8)}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("${request}", "make a chart"),
        ("${task.id}", "t"),
        ("${task.request}", "make a chart of the sales"),
        ("${target.id}", "report.docx"),
        ("${target.address}", "app/word/report.docx"),
        ("${subtasks.1.output.rows}", 4),
        ("${subtasks.1.output.ratio}", 0.5),
        ("${subtasks.1.output.done}", True),
        ("${subtasks.1.output.none}", None),
        ("${subtasks.1.output.cells}", [["a", 1]]),
        ("${subtasks.1.output.cells.0.1}", 1),
        ("${subtasks.1.output.0}", "zero"),
        ("${subtasks.1.outcome}", "finished"),
        ("${subtasks.1.artifacts.0}", "/srv/report.docx"),
        ("${steps.1.results.0.value.rows}", [[1, 2.5], ["a"]]),
        ("${observation.controls.0.id}", "table-1"),
        ("${observation.controls.0.detail.rows}", 4),
        ("${observation.targets.0.name}", "Report"),
        ("${ request }", "make a chart"),
    ],
)
def test_a_reference_that_is_the_whole_string_keeps_its_type(asks, reference, value):
    said = resolved(reference, asks())
    assert (said, type(said)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${subtasks.1.output.rows} rows", "4 rows"),
        ("${request}: ${task.id}", "make a chart: t"),
        ("${request}${task.id}", "make a chartt"),
        ("$${request}", "${request}"),
        ("$${request} is ${request}", "${request} is make a chart"),
        ("costs $5 {net}", "costs $5 {net}"),
        ("$", "$"),
        ("${", "${"),
        ("", ""),
    ],
)
def test_references_within_a_string_become_text(asks, text, said):
    assert resolved(text, asks()) == said


def test_references_are_resolved_at_any_depth_but_not_in_keys(asks):
    value = {"${request}": [{"deep": ["${subtasks.1.output.rows}"]}], "n": 3}
    assert resolved(value, asks()) == {"${request}": [{"deep": [4]}], "n": 3}


def test_value_of_a_reference_is_not_resolved_again(asks):
    assert resolved("${request}", asks(request="${task.id}")) == "${task.id}"
    assert resolved("do: ${request}", asks(request="${task.id}")) == "do: ${task.id}"


def test_value_of_a_reference_keeps_its_dollar_signs(asks):
    assert resolved("do: ${request}", asks(request="print $${x}")) == "do: print $${x}"


def test_the_script_itself_is_not_changed_by_playing_it(asks):
    script = {APP: [{"Result": ["${request}"]}]}
    play(script, asks())
    assert script == {APP: [{"Result": ["${request}"]}]}


@given(text=st.text(alphabet="${}ab. ", max_size=12))
def test_any_string_is_resolved_or_refused_as_the_scripts_fault(asks, text):
    try:
        said = resolved(text, asks())
    except ScriptError:
        assert "${" in text
    else:
        assert isinstance(said, str)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${nothing}", "what the agent sees has request, task, target, observation, subtasks, steps, not 'nothing'"),
        ("${subtasks.2.output}", "subtasks has 1, not '2'"),
        ("${subtasks.1.output.columns}", "subtasks.1.output has rows, ratio, done, none, cells, 0, not 'columns'"),
        ("${steps.1.results.7.value}", "not '7'"),
        ("${steps.1.results.-1.value}", "not '-1'"),
        ("${request.upper}", "request is 'make a chart', not 'upper'"),
        ("${}", "not ''"),
        ("${request.}", "not ''"),
        ("${observation.controls.\u00b2}", "not '\u00b2'"),
    ],
)
def test_a_dead_reference_names_the_agent_the_step_and_what_there_is(asks, reference, why):
    told = refused({APP: [{"Result": f"see {reference}"}]}, asks())
    assert told.startswith(f"{APP}, step 2: night.yaml, answer 1 of {APP}: {reference} leads nowhere: ")
    assert why in told


def test_a_target_can_not_be_referred_to_where_there_is_none(asks):
    assert "target has nothing, not 'id'" in refused({APP: [{"Result": "${target.id}"}]}, asks(target=None))


def test_a_script_without_a_next_answer_names_the_agent_and_the_step(asks):
    told = refused({APP: [{"Status": "CONTINUE"}]}, asks(call=2))
    assert told == f"{APP}, step 2: night.yaml has no answer 2 for {APP}; it has 1: add the next one"


def test_an_answer_that_is_sent_back_ends_the_step_and_tells_why(asks):
    told = refused({APP: [{"Status": "NEXT"}]}, asks(call=2, reasons=("'NEXT' is not legal now",)))
    assert "answer 1 of night.yaml can't be used: 'NEXT' is not legal now" in told


def test_an_agent_unknown_to_the_script_is_named_with_the_known_ones(asks):
    told = refused({"host": [], "linux/a": []}, asks())
    missing = "night.yaml has no answers for this agent"
    assert told == f"{APP}, step 2: {missing}: add a list of them, {APP!r}; it has answers for host, linux/a"


def test_the_missing_key_of_a_host_agent_is_host(asks):
    told = refused({APP: []}, asks(kind=AgentKind.HOST, address="host/t"))
    assert f"add a list of them, 'host'; it has answers for {APP}" in told


def test_an_empty_script_has_no_answers_at_all(asks):
    assert refused({}, asks()).endswith("; it has no answers at all")


def test_missing_value_error_names_the_failure_before_it(asks):
    failed = CommandResult(call_id="t~2.1.1", tool="write", status=ResultStatus.FAILURE, error="A1 is not empty")
    skipped = CommandResult(call_id="t~2.1.2", tool="save", status=ResultStatus.SKIPPED, error="write failed")
    planned = CommandResult(call_id="t~2.1.1", tool="write", status=ResultStatus.DRY_RUN, error="not executed")
    (step,) = asks().memory
    for results, told in [
        ((failed, skipped), "'cells'; before, write failed: A1 is not empty"),
        ((planned, skipped), "'cells'; write has no value, because a dry run does not execute it"),
    ]:
        request = asks(memory=(step.model_copy(update={"results": (*step.results, *results)}),))
        error = refused({APP: [{"Result": "${steps.1.results.1.value.cells}"}]}, request)
        assert error.endswith(f"steps.1.results.1.value is None, not {told}")
    handled = asks(memory=(step.model_copy(update={"results": (failed,)}), step))
    assert "before" not in refused({APP: [{"Result": "${targt}"}]}, handled)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([], "expected address → list of answers, found a list"),
        ("host", "expected address → list of answers, found text"),
        ({"host": {"Status": "FINISH"}}, "host: expected a list of answers, found a mapping of keys to values"),
        ({"host": "FINISH"}, "host: expected a list of answers, found text"),
        ({"host": None}, "host: expected a list of answers, found nothing"),
        ({"host": [{}, "FINISH"]}, "host: answer 2 is a str, not an object"),
        ({"host": [[]]}, "host: answer 1 is a list, not an object"),
    ],
)
def test_a_malformed_script_is_refused_when_it_is_made(answers, why):
    with pytest.raises(ScriptError) as info:
        ScriptedModel(answers, "night.yaml")
    assert str(info.value) == f"night.yaml: {why}"


def test_a_script_is_read_from_a_file(tmp_path, asks):
    file = tmp_path / "night.yaml"
    file.write_text(yaml.safe_dump({APP: [{"Status": "FINISH", "Comment": "Zähle"}]}, allow_unicode=True), "utf-8")
    said = asyncio.run(ScriptedModel.load(file).answer(asks())).content
    assert said == {"Status": "FINISH", "Comment": "Zähle"}


def test_empty_file_is_an_empty_script(tmp_path):
    (tmp_path / "night.yaml").write_text("")
    assert isinstance(ScriptedModel.load(tmp_path / "night.yaml"), ScriptedModel)


@pytest.mark.parametrize(
    "content", [b"host: [", b"\xff\xfe", b"host: !!python/object/apply:os.getcwd []", b"- a", b"7"]
)
def test_invalid_script_is_refused_with_its_file_name(tmp_path, content):
    file = tmp_path / "night.yaml"
    file.write_bytes(content)
    with pytest.raises(ScriptError, match=r"night\.yaml"):
        ScriptedModel.load(file)


@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_a_file_that_can_not_be_read_is_refused_by_name(tmp_path, name):
    with pytest.raises(ScriptError, match="can't be read"):
        ScriptedModel.load(tmp_path / name)
