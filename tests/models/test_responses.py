"""The response schemas: the field's own keys, their aliases, and nothing that is not known."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard.actors.processing import AGENTS, MACHINES
from callboard.messages import Action, AskedQuestion, ControlRef, InvalidAnswerError, form_of
from callboard.models import (
    AgentResponse,
    AppResponse,
    HostResponse,
    LinuxResponse,
    MobileResponse,
    read_response,
)
from callboard.models._responses import STATUS_ALIASES

HOST, APP, MOBILE, LINUX = HostResponse, AppResponse, MobileResponse, LinuxResponse
every_kind = pytest.mark.parametrize("kind", [spec.response for spec in AGENTS.values()])


def refused(kind: type[AgentResponse], content: object) -> str:
    with pytest.raises(InvalidAnswerError) as info:
        read_response(kind, content)
    return str(info.value)


def test_answer_with_many_problems_names_the_first_ten():
    told = refused(HostResponse, {"Status": "ASSIGN", "Sub-Tasks": [{"Order": 1}] * 2000})
    assert told.count("unknown key") == 10
    assert told.endswith("Sub-Tasks.9.Order: unknown key; and 1990 more")


# The samples of the agents' specifications, as they stand there.

HOST_ASSIGNS = """
{
  "Observation": "Desktop shows Word and Excel. User wants to extract data from Word.",
  "Thought": "I should start with Word to extract the table data first.",
  "Current Sub-Task": "Extract table data from Word document",
  "ControlLabel": "0",
  "ControlText": "Microsoft Word - Document1",
  "Status": "ASSIGN",
  "Comment": "Delegating data extraction to Word AppAgent"
}
"""

HOST_ASSIGNS_SHORT = """{"Status": "ASSIGN", "ControlText": "Microsoft Word"}"""

APP_CLICKS = """
{
  "Observation": "Word document with Export button [12] visible",
  "Thought": "I should click the Export button to extract table data",
  "ControlLabel": "12",
  "ControlText": "Export",
  "Function": "click_input",
  "Args": {"button": "left"},
  "Status": "SCREENSHOT",
  "Comment": "Clicking Export will open a dialog"
}
"""

APP_FINISHES = """
{
    "Status": "FINISH",
    "Comment": "Table data successfully extracted and saved"
}
"""

MOBILE_CLICKS = {
    "action": {
        "function": "click_control",
        "arguments": {"control_id": "5", "control_name": "Search"},
        "status": "CONTINUE",  # or "FINISH" or "FAIL"
    },
    "thought": "Need to click the search button to proceed",
}


def test_the_host_agents_sample_is_read():
    response = read_response(HOST, HOST_ASSIGNS)
    assert isinstance(response, HostResponse)
    assert response.subtask == "Extract table data from Word document"
    assert (response.label, response.text) == ("0", "Microsoft Word - Document1")
    assert response.decided_status() == "ASSIGN"
    assert response.decided_actions() == ()
    assert response.comment == "Delegating data extraction to Word AppAgent"


def test_the_host_agents_short_sample_is_read():
    response = read_response(HOST, HOST_ASSIGNS_SHORT)
    assert (response.text, response.decided_status()) == ("Microsoft Word", "ASSIGN")


def test_the_app_agents_sample_is_read():
    response = read_response(APP, APP_CLICKS)
    assert isinstance(response, AppResponse)
    assert response.observation == "Word document with Export button [12] visible"
    assert response.thought == "I should click the Export button to extract table data"
    assert response.decided_status() == "SCREENSHOT"
    control = ControlRef(id="12", name="Export")
    assert response.decided_actions() == (Action(tool="click_input", arguments={"button": "left"}, control=control),)


def test_the_app_agents_end_is_read():
    response = read_response(APP, APP_FINISHES)
    assert (response.decided_status(), response.comment) == ("FINISH", "Table data successfully extracted and saved")


@pytest.mark.parametrize("status", ["CONTINUE", "FINISH", "FAIL"])
def test_the_mobile_agents_sample_is_read(status):
    sample = {**MOBILE_CLICKS, "action": {**MOBILE_CLICKS["action"], "status": status}}
    response = read_response(MOBILE, json.dumps(sample))
    assert isinstance(response, MobileResponse)
    assert response.decided_status() == status
    assert response.thought == "Need to click the search button to proceed"
    arguments = {"control_id": "5", "control_name": "Search"}
    assert response.decided_actions() == (
        Action(tool="click_control", arguments=arguments, control=ControlRef(id="5", name="Search")),
    )


# Keys and their aliases.


@every_kind
@pytest.mark.parametrize(
    ("field", "keys", "value"),
    [
        ("observation", ["Observation", "observation"], "two windows"),
        ("thought", ["Thought", "thought"], "begin with the first"),
        ("comment", ["Comment", "comment", "Message", "message"], "done"),
        ("plan", ["Plan", "plan"], ["one", "two"]),
        ("status", ["Status", "status"], "FINISH"),
        ("result", ["Result", "result"], {"rows": 4}),
        ("function", ["Function", "function"], "click"),
        ("arguments", ["Args", "args", "Arguments", "arguments"], {"button": "left"}),
        ("label", ["ControlLabel", "control_label"], "12"),
        ("text", ["ControlText", "control_text"], "Export"),
    ],
)
def test_a_field_is_read_under_each_of_its_keys(kind, field, keys, value):
    assert [getattr(read_response(kind, {key: value}), field) for key in keys] == [value] * len(keys)


@pytest.mark.parametrize("key", ["Current Sub-Task", "CurrentSubtask", "current_subtask", "Subtask", "subtask"])
def test_a_subtask_is_read_under_each_of_its_keys(key):
    assert read_response(HOST, {key: "count the rows"}).subtask == "count the rows"
    assert f"{key}: unknown key" in refused(APP, {key: "count the rows"})


@pytest.mark.parametrize("key", ["ControlReannotate", "control_reannotate", "reannotate"])
@pytest.mark.parametrize("value", [["1", "2"], [1, 2]], ids=["words", "numbers"])
def test_controls_to_annotate_are_read_under_each_of_their_keys(key, value):
    assert read_response(APP, {key: value}).reannotate == ["1", "2"]
    assert f"{key}: unknown key" in refused(MOBILE, {key: value})


@pytest.mark.parametrize("key", ["Actions", "actions", "ActionList", "action_list", "Action", "action"])
@pytest.mark.parametrize("listed", [True, False])
def test_actions_are_read_one_or_many_under_each_of_their_keys(key, listed):
    call = {"function": "click", "arguments": {"button": "left"}}
    response = read_response(APP, {key: [call] if listed else call})
    assert response.decided_actions() == (Action(tool="click", arguments={"button": "left"}),)


@pytest.mark.parametrize("function", ["Function", "function", "tool"])
@pytest.mark.parametrize("arguments", ["Args", "args", "Arguments", "arguments", "parameters"])
@pytest.mark.parametrize("label", ["ControlLabel", "control_label", "control_id"])
@pytest.mark.parametrize("text", ["ControlText", "control_text", "control_name"])
def test_an_action_is_read_under_each_of_its_keys(function, arguments, label, text):
    call = {function: "click", arguments: {"x": 1}, label: 12, text: "Export"}
    assert read_response(APP, {"Actions": [call]}).decided_actions() == (
        Action(tool="click", arguments={"x": 1}, control=ControlRef(id="12", name="Export")),
    )


def test_actions_keep_their_order_the_flat_one_first():
    response = read_response(APP, {"Function": "a", "Actions": [{"tool": "b"}, {"tool": "c"}]})
    assert [action.tool for action in response.decided_actions()] == ["a", "b", "c"]


@pytest.mark.parametrize("nothing", [None, [], {}, "", [{"function": ""}], [{"function": None}]], ids=repr)
def test_an_answer_without_a_function_has_no_action(nothing):
    assert read_response(APP, {"Actions": nothing}).decided_actions() == ()


def test_the_control_beside_a_host_agents_action_is_read_as_a_target():
    response = read_response(HOST, {"Function": "open", "ControlLabel": "0", "ControlText": "Word"})
    assert response.decided_actions() == (Action(tool="open"),)


@pytest.mark.parametrize("label", [12, "12", 12.0], ids=repr)
def test_a_label_that_is_a_number_is_its_digits(label):
    (action,) = read_response(APP, {"Function": "click", "ControlLabel": label}).decided_actions()
    assert action.control is not None
    assert action.control.id == str(label)


@pytest.mark.parametrize(
    "key", ["Observation", "Thought", "Comment", "Status", "Function", "ControlLabel", "ControlText"]
)
def test_null_is_read_as_a_missing_member(key):
    assert read_response(APP, {key: None}) == read_response(APP, {})


# Statuses.


@pytest.mark.parametrize("spec", AGENTS.values(), ids=AGENTS)
def test_every_status_of_the_machine_is_read_in_any_case(spec):
    for status in spec.machine.transitions:
        for spelling in (status, status.lower(), status.title(), f"  {status} \n"):
            assert read_response(spec.response, {"Status": spelling}).decided_status() == status


@pytest.mark.parametrize(("alias", "status"), STATUS_ALIASES.items())
def test_synonyms_of_a_status_are_read(alias, status):
    for spelling in (alias, alias.lower(), alias.replace("_", " "), alias.replace("_", "-").title()):
        assert read_response(HOST, {"Status": spelling}).decided_status() == status


def test_a_status_is_a_plain_text_also_by_an_alias():
    assert type(read_response(APP, {"Status": "done"}).decided_status()) is str


def test_no_alias_is_a_status_of_its_own():
    statuses = {status for machine in MACHINES.values() for status in machine.transitions}
    assert set(STATUS_ALIASES.values()) <= statuses
    assert not set(STATUS_ALIASES) & statuses


def test_an_unknown_status_is_left_to_the_check_against_the_table():
    assert read_response(APP, {"Status": "Perhaps"}).decided_status() == "PERHAPS"


@pytest.mark.parametrize("nothing", [{}, {"Status": ""}, {"Status": None}, {"Status": "  "}], ids=repr)
def test_an_answer_without_a_status_has_none(nothing):
    assert read_response(APP, nothing).decided_status() == ""


def test_the_status_of_the_last_action_counts_where_the_answer_has_none():
    calls = [{"function": "a", "status": "CONTINUE"}, {"function": "b", "status": "FINISH"}, {"function": "c"}]
    assert read_response(MOBILE, {"Actions": calls}).decided_status() == "FINISH"


def test_the_answers_own_status_beats_that_of_its_actions():
    answer = {"Status": "FAIL", "Action": {"function": "a", "status": "FINISH"}}
    assert read_response(MOBILE, answer).decided_status() == "FAIL"


# Questions.


@pytest.mark.parametrize("key", ["Questions", "questions", "Question", "question"])
@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Which file?", (AskedQuestion(text="Which file?"),)),
        (["Which file?", "Which sheet?"], (AskedQuestion(text="Which file?"), AskedQuestion(text="Which sheet?"))),
        ({"text": "Which?", "choices": ["a", "b"]}, (AskedQuestion(text="Which?", choices=("a", "b")),)),
        ([{"Question": "Which?", "options": ["a"]}], (AskedQuestion(text="Which?", choices=("a",)),)),
        ([], ()),
        (None, ()),
        ("", ()),
    ],
)
def test_questions_are_read_in_each_form(key, said, asked):
    assert read_response(APP, {key: said, "Status": "CONTINUE"}).asked() == asked


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"Comment": "Which file?", "Thought": "I can't tell"}, "Which file?"),
        ({"Thought": "I can't tell"}, "I can't tell"),
        ({}, "How shall I go on?"),
        ({"Questions": [""], "Comment": "Which file?"}, "Which file?"),
    ],
)
def test_pending_answer_always_has_a_question(answer, text):
    assert read_response(APP, {"Status": "PENDING", **answer}).asked() == (AskedQuestion(text=text),)


# Text around the JSON, and text that is no JSON.


@pytest.mark.parametrize(
    "text",
    [
        '{"Status": "FINISH"}',
        '  \n{"Status": "FINISH"}\n ',
        '```json\n{"Status": "FINISH"}\n```',
        '```\n{"Status": "FINISH"}\n```',
        '```JSON\n{"Status": "FINISH"}```',
        '\n  ```json  \n{\n"Status": "FINISH"\n}\n  ```  \n',
    ],
    ids=ascii,
)
def test_a_fence_around_the_json_is_taken_off(text):
    assert read_response(APP, text).decided_status() == "FINISH"


@pytest.mark.parametrize(
    "text",
    [
        'Here it is:\n{"Status": "FINISH"}\nI hope it helps.',
        'First I look.\n```json\n{"Status": "FINISH"}\n```\nDone.',
        '<think>Is {it} done?</think>\n{"Status": "FINISH"}',
        '<thinking>\n{"Status": "FAIL"}\n</thinking>{"Status": "FINISH"}',
        '{} {"Status": "FINISH"}',
        '{"Status": "FINISH"}\n{"Status": "FINISH"}',
    ],
)
def test_words_around_the_json_are_taken_off(text):
    assert read_response(APP, text).decided_status() == "FINISH"


@pytest.mark.parametrize(
    "text",
    [
        '{"Status": "CONTINUE"}\n{"Status": "FINISH"}',
        '{"Thought": "cut", "Actions": [{"Function": "write", "Status": "FINISH"}',
        "I am done.",
        "",
        "{Status: FINISH}",
    ],
)
def test_answer_without_one_clear_object_is_refused(text):
    assert refused(APP, text).startswith("the answer is not JSON")


@pytest.mark.parametrize("key", ["status", "STATUS", "Status ", "_status"])
def test_a_key_is_read_in_any_case(key):
    assert read_response(APP, {key: "FINISH"}).decided_status() == "FINISH"


@pytest.mark.parametrize("key", ["current sub-task", "CURRENT_SUB_TASK", "CurrentSubTask", "SubTask"])
def test_the_words_of_a_key_may_be_joined_in_any_way(key):
    response = read_response(HOST, {"Status": "ASSIGN", key: "read"})
    assert isinstance(response, HostResponse)
    assert response.subtask == "read"


def test_keys_of_an_action_are_read_in_any_case():
    said = {"actions": [{"FUNCTION": "write", "controlText": "Total", "ARGS": {"Text": "x"}}]}
    action = read_response(APP, said).decided_actions()[0]
    assert action == Action(tool="write", arguments={"Text": "x"}, control=ControlRef(id="", name="Total"))


def test_two_keys_that_mean_the_same_are_refused():
    assert "STATUS" in refused(APP, {"STATUS": "FINISH", "status": "CONTINUE", "sTATUS": "FAIL"})


@pytest.mark.parametrize("nothing", ["none", "None", "null", "no_action", " "])
def test_placeholder_for_no_tool_gives_no_action(nothing):
    assert read_response(APP, {"Function": nothing, "Args": {}, "Status": "FINISH"}).decided_actions() == ()


def test_a_fence_inside_a_text_stays():
    answer = {"Status": "FINISH", "Comment": "run:\n```\nls\n```"}
    assert read_response(LINUX, json.dumps(answer)).comment == "run:\n```\nls\n```"
    assert read_response(LINUX, f"```json\n{json.dumps(answer)}\n```").comment == "run:\n```\nls\n```"


@every_kind
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "the answer is not JSON"),
        ("I am done.", "the answer is not JSON"),
        ('{"Status": "FINISH"', "the answer is not JSON"),
        ('{"Status": "FINISH"} {"Status": "FAIL"}', "the answer is not JSON"),
        ("[]", "must be one JSON object, and is a list"),
        ("null", "must be one JSON object, and is nothing"),
        ('"FINISH"', "must be one JSON object, and is text"),
        (None, "must be one JSON object, and is nothing"),
        (7, "must be one JSON object, and is a number"),
        ([{"Status": "FINISH"}], "must be one JSON object, and is a list"),
    ],
)
def test_answer_that_is_not_an_object_is_refused(kind, content, why):
    assert why in refused(kind, content)


@every_kind
@pytest.mark.parametrize("key", ["Confidence", "STATUS", "Stat us", "", "model_config", "__class__"])
def test_an_unknown_key_is_refused_by_name(kind, key):
    assert refused(kind, {"Status": "FINISH", key: 1}) == f"{key}: unknown key"


def test_an_unknown_key_of_an_action_is_refused_by_its_place():
    assert (
        refused(APP, {"Actions": [{"function": "a"}, {"function": "b", "speed": 3}]}) == "Actions.1.speed: unknown key"
    )


def test_error_lists_all_problems_at_once():
    told = refused(APP, {"Args": "left", "Confidence": 1, "Observation": ["a"]})
    assert {part.split(":")[0] for part in told.split("; ")} == {"Args", "Confidence", "Observation"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    "answer",
    [
        '{"Result": NUMBER}',
        '{"Function": "a", "Args": {"x": [NUMBER]}}',
        '{"Action": {"tool": "a", "args": {"x": NUMBER}}}',
    ],
    ids=["result", "flat", "nested"],
)
def test_a_number_that_json_does_not_have_is_refused(answer, number):
    assert refused(APP, answer.replace("NUMBER", number))


@pytest.mark.parametrize(
    "answer", ['{"Result": DEEP}', "DEEP", '{"Args": {"x": DEEP}}'], ids=["result", "bare", "args"]
)
def test_an_answer_that_is_nested_too_deeply_is_refused(answer):
    depth = sys.getrecursionlimit() * 2
    assert refused(APP, answer.replace("DEEP", "[" * depth + "]" * depth))


@pytest.mark.parametrize("answer", ['{"Comment": "\\ud800"}', '{"Function": "a", "Args": {"x": ["\\ud800"]}}'])
def test_a_text_that_can_not_be_written_down_is_refused(answer):
    # Half of a surrogate pair: JSON can spell it, UTF-8 can't, and a result that holds it can't be dumped.
    assert refused(APP, answer)


# Whatever a model says.

KEYS = sorted(
    {
        key
        for schema in (HostResponse, AppResponse)
        for field in schema.model_fields.values()
        for key in field.validation_alias.choices
    }
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(KEYS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=10,
)
KINDS = st.sampled_from([spec.response for spec in AGENTS.values()])


def decided_or_refused(kind: type[AgentResponse], content: Any) -> None:
    with contextlib.suppress(InvalidAnswerError):
        response = read_response(kind, content)
        decided = (response.decided_status(), response.decided_actions(), response.asked())
        assert [type(part) for part in decided] == [str, tuple, tuple]


@given(kind=KINDS, content=ANY_JSON | st.dictionaries(st.sampled_from(KEYS), ANY_JSON, max_size=5))
@settings(max_examples=400)
def test_any_json_is_decided_on_or_refused(kind, content):
    decided_or_refused(kind, content)


@given(kind=KINDS, content=ANY_JSON)
@settings(max_examples=200)
def test_any_json_text_is_decided_on_or_refused(kind, content):
    decided_or_refused(kind, json.dumps(content))


@given(kind=KINDS, content=st.text() | st.text(alphabet='{}[]":,` \n\\u01json', max_size=30))
@example(kind=APP, content="```\n```")
@example(kind=APP, content="9" * 5000)
@settings(max_examples=200)
def test_any_text_is_decided_on_or_refused(kind, content):
    decided_or_refused(kind, content)


DECIDED = {"Status": "CONTINUE", "Actions": [{"Function": "write", "ControlText": "Total", "Args": {"text": "7"}}]}


@pytest.mark.parametrize("key", ["Decision", "decision", " DECISION_"])
def test_decision_members_may_stand_beside_the_decision(key):
    said = {"Thought": "Next.", key: DECIDED, "Comment": "I write."}
    assert read_response(APP, said) == read_response(APP, {"Thought": "Next.", **DECIDED, "Comment": "I write."})


def test_a_key_both_in_the_decision_and_beside_it_goes_back():
    with pytest.raises(InvalidAnswerError, match="Status: appears both in the decision and beside it"):
        read_response(APP, {"Decision": DECIDED, "Status": "FINISH"})


@pytest.mark.parametrize("decision", ["FINISH", [{"Status": "FINISH"}], None, 7], ids=repr)
def test_decision_that_is_not_an_object_is_refused(decision):
    why = f"Decision: must be one JSON object with the Status in it, and is {form_of(decision)}"
    assert refused(APP, {"Decision": decision, "Status": "FINISH"}) == why
    assert refused(APP, {"decision": decision}) == why


FINISH, FAIL = '{"Status": "FINISH"}', '{"Status": "FAIL"}'


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (f"<think>x {FAIL}", "its thoughts are not closed"),
        (f"Well. <THINKING>x {FAIL} y</thinking>", "its thoughts are not closed"),
        (f'{FINISH} or rather {{"Status":"FAIL"', "the text at character"),
        (f"{FINISH} {{broken", "the text at character"),
        (f"{FINISH} and {{so on", "the text at character"),
        ('{"Status": "FAIL", "Status": "FINISH"}', "the key 'Status' appears twice"),
        ('I say {"Actions": [{"Function": "a", "Args": {"x": 1, "x": 2}}]}', "the key 'x' appears twice"),
        (f'{FINISH} {{"Status": "FINISH", "Status": "FAIL"}}', "the key 'Status' appears twice"),
    ],
)
def test_duplicate_keys_and_unclosed_parts_are_refused(said, why):
    assert why in refused(APP, said)


def test_decision_inside_think_tags_is_ignored():
    assert read_response(APP, f"<think>{FAIL}</think>{FINISH}").decided_status() == "FINISH"
