"""The schema of one answer: only legal and existing choices, in a form that strict modes take."""

from __future__ import annotations

import dataclasses

import jsonschema
import pytest

from callboard.actors.processing import MACHINES
from callboard.messages import UNATTENDED, AgentKind, Control, Effect, Observation, Outcome, Target, TargetKind
from callboard.models import ToolInfo, read_response
from callboard.models.prompt import _answer_schema as limits
from callboard.models.prompt import _strict
from callboard.models.prompt._answer_schema import (
    IN_DECISION,
    KEYS,
    answer_schema,
    legal_statuses,
    offered_tools,
    parts_of,
)
from callboard.models.prompt._strict import without_nulls
from callboard.models.prompt._system import examples
from callboard.testing import MemoryServer

SERVER = MemoryServer(MemoryServer.window())
TARGETS = Observation(targets=SERVER.targets())
TARGETS_AND_FIELD = Observation(targets=SERVER.targets(), controls=(Control(id="f", name="Field", kind="field"),))


def tool(name="write", required=("control_id", "text"), **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolInfo(name=name, description="Does it.", schema=schema, effect=Effect.ONCE)


WRITE = tool(
    control_id={"type": "string"},
    control_name={"type": "string", "default": ""},
    text={"type": "string"},
    bold={"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
)


def asked(asks, kind=AgentKind.APP, status="CONTINUE", **more):
    fields = {"kind": kind, "status": status, "statuses": MACHINES[kind].offered(status), "tools": (WRITE,), **more}
    return asks(**fields)


def decision_forms(schema):
    """Give the forms of a decision by their status."""
    decision = schema["properties"]["Decision"]
    return {form["properties"]["Status"]["enum"][0]: form for form in decision.get("anyOf", [decision])}


def form_of(schema, status="CONTINUE"):
    return decision_forms(schema)[status]["properties"]


def objects(schema):
    """Give all parts that are objects."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def action_of(schema):
    assert form_of(schema)["Actions"]["items"] == {"$ref": "#/$defs/Action"}
    return schema["$defs"]["Action"]


WORKING = [
    (kind, status) for kind in AgentKind for status in MACHINES[kind].transitions if MACHINES[kind].offered(status)
]


@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_the_status_is_one_of_those_that_the_table_offers(asks, kind, status):
    schema = answer_schema(asked(asks, kind, status))
    looks = {"SCREENSHOT"} if kind == AgentKind.OPERATOR else set()  # an operator has an action for that
    assert list(decision_forms(schema)) == [each for each in MACHINES[kind].offered(status) if each not in looks]


@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_every_schema_is_sound_and_strict(asks, kind, status):
    schema = answer_schema(asked(asks, kind, status))
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in objects(schema):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])


def test_assign_is_unavailable_without_a_target(asks):
    schema = answer_schema(asked(asks, AgentKind.HOST, observation=Observation()))
    assert "ASSIGN" not in decision_forms(schema)


def test_a_host_chooses_from_the_targets_that_there_are(asks):
    schema = answer_schema(asked(asks, AgentKind.HOST, observation=TARGETS))
    assert form_of(schema, "ASSIGN")["ControlText"]["enum"] == ["memo:one"]


def test_an_agent_chooses_from_the_controls_that_there_are(asks):
    seen = Observation(
        controls=tuple(
            Control(id=f"t-{n}", name=name, kind="table") for n, name in enumerate(("Sales", "Costs", "Costs"))
        )
    )
    schema = answer_schema(asked(asks, observation=seen))
    assert schema["$defs"]["Control"]["enum"] == ["Sales", "Costs [t-1]", "Costs [t-2]"]
    assert action_of(schema)["properties"]["ControlText"] == {"$ref": "#/$defs/Control"}


@pytest.mark.parametrize(("count", "length"), [(_strict.MOST_CHOICES + 1, 5), (100, 79)], ids=["many", "long"])
def test_controls_are_not_enumerated_where_that_would_be_too_long(asks, count, length):
    seen = Observation(controls=tuple(Control(id=f"c-{n}", name=f"{n:0{length}}", kind="cell") for n in range(count)))
    schema = answer_schema(asked(asks, observation=seen))
    assert "Control" not in schema["$defs"]
    assert action_of(schema)["properties"]["ControlText"] == {"type": "string"}


def test_the_control_is_beside_the_arguments_and_optional_ones_may_be_null(asks):
    form = action_of(answer_schema(asked(asks)))
    assert list(form["properties"]) == ["Function", "ControlText", "Args"]
    assert form["properties"]["Function"]["enum"] == ["write"]
    assert form["properties"]["Args"]["properties"] == {
        "text": {"type": "string"},
        "bold": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    }


def test_each_tool_has_arguments_of_its_own(asks):
    touch = tool("touch", required=("times",), times={"type": "integer", "minimum": 1})
    forms = action_of(answer_schema(asked(asks, tools=(WRITE, touch))))["anyOf"]
    assert [form["properties"]["Function"]["enum"] for form in forms] == [["touch"], ["write"]]
    assert forms[0]["properties"]["Args"]["properties"] == {"times": {"type": "integer", "minimum": 1}}
    assert "ControlText" not in forms[0]["properties"]


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"allOf": [{"type": "string"}, {"minLength": 3}]},
        {"$ref": "#/$defs/Endless"},
        {"$ref": "#/nowhere"},
        {"enum": []},
        {"enum": "abc"},
        {"enum": 5},
        {"enum": [{"x": 1}]},
        {"type": "string", "enum": [1]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": None},
        True,
    ],
    ids=str,
)
def test_arguments_that_have_no_strict_form_may_have_any(asks, part):
    strange = tool("strange", required=(), value=part)
    strange.schema["$defs"] = {"Endless": {"anyOf": [{"$ref": "#/$defs/Endless"}]}}
    form = action_of(answer_schema(asked(asks, tools=(strange,))))
    assert form["properties"]["Args"] == {"type": "object", "additionalProperties": True}


@pytest.mark.parametrize(
    ("part", "strict"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"const": 3}, {"type": "integer", "enum": [3]}),
        ({"enum": ["b", 1, "a", "b", True]}, {"anyOf": [{"type": "string", "enum": ["b", "a"]},
         {"type": "integer", "enum": [1]}, {"type": "boolean", "enum": [True]}]}),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"type": "number", "enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"type": "string", "enum": [f"{n}" for n in range(_strict.MOST_CHOICES + 1)]}, {"type": "string"}),
        ({"type": "string", "enum": ["a"], "title": "A"}, {"type": "string", "enum": ["a"]}),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        ({"$ref": "#/$defs/Key"}, {"type": "integer", "maximum": 9}),
        ({"type": "array", "items": {"type": "null"}, "minItems": 1, "title": "A"},
         {"type": "array", "items": {"type": "null"}, "minItems": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_parameter_keeps_only_keywords_of_strict_modes(asks, part, strict):
    info = tool("set", required=("value",), value=part)
    info.schema["$defs"] = {"Key": {"type": "integer", "maximum": 9, "description": "A key."}}
    assert action_of(answer_schema(asked(asks, tools=(info,))))["properties"]["Args"]["properties"]["value"] == strict


def test_very_many_tools_share_one_form(asks):
    tools = tuple(dataclasses.replace(WRITE, name=f"tool_{n:03}") for n in range(limits.MOST_TOOLS + 1))
    form = action_of(answer_schema(asked(asks, tools=tools)))
    assert len(form["properties"]["Function"]["enum"]) == limits.MOST_TOOLS + 1


@pytest.mark.parametrize("kind", AgentKind)
def test_every_example_has_the_form_of_an_answer_and_can_be_read(asks, kind):
    request = asked(asks, kind, observation=TARGETS_AND_FIELD)
    schema = answer_schema(request)
    shown = list(examples(request.response, parts_of(request)))
    assert len(shown) == len(request.response.examples)
    for _, answer in shown:
        assert list(answer) == list(schema["properties"])
        form = form_of(schema, answer["Decision"]["Status"])
        assert list(answer["Decision"]) == list(form)
        assert read_response(request.response, answer).decided_status() in request.statuses


@pytest.mark.parametrize(("kind", "status"), WORKING)
def test_schema_rejects_members_of_another_status(asks, kind, status):
    belongs = {
        "CONTINUE": ["Actions"],
        "CONFIRM": ["Actions"],
        "ASSIGN": ["ControlText", "Current Sub-Task"],
        "SCREENSHOT": ["ControlReannotate"],
        "PENDING": ["Questions"],
        "FINISH": ["Result"],
    }
    request = asked(asks, kind, status, observation=TARGETS_AND_FIELD)
    for name, form in decision_forms(answer_schema(request)).items():
        assert list(form["properties"]) == [*IN_DECISION, *belongs.get(name, [])]
    assert {name: list(keys) for name, keys in parts_of(request).items()} == {
        name: belongs.get(name, []) for name in request.statuses
    }


def test_parts_of_a_status_match_its_schema(asks):
    for tools in ((WRITE,), ()):
        request = asked(asks, tools=tools)
        forms = decision_forms(answer_schema(request))
        assert list(answer_schema(request)["properties"]) == list(KEYS)
        assert parts_of(request) == {
            name: tuple(form["properties"])[len(IN_DECISION) :] for name, form in forms.items()
        }


@pytest.mark.parametrize("kind", AgentKind)
def test_open_plan_requires_continuing_and_empty_plan_finishing(asks, kind):
    forms = decision_forms(answer_schema(asked(asks, kind, observation=TARGETS_AND_FIELD)))
    plans = {name: form["properties"]["Plan"] for name, form in forms.items()}
    something, nothing = ["write it"], []
    fits = {
        name: [jsonschema.Draft202012Validator(plan).is_valid(told) for told in (something, nothing)]
        for name, plan in plans.items()
    }
    goes_on = {"CONTINUE", "CONFIRM", "ASSIGN"} & fits.keys()
    assert goes_on
    assert all(fits[name] == [True, False] for name in goes_on)
    assert fits["FINISH"] == [False, True]
    assert fits["FAIL"] == [True, True]


def test_there_are_no_actions_where_there_is_no_tool(asks):
    assert list(form_of(answer_schema(asked(asks, tools=())))) == list(IN_DECISION)


def test_a_tool_that_needs_a_control_is_not_offered_where_there_is_none(asks):
    assert offered_tools(asked(asks, observation=Observation())) == ()
    assert offered_tools(asked(asks)) == (WRITE,)


def test_a_tool_has_the_choice_of_the_controls_that_it_acts_on(asks):
    kinds = {"Sales": "table", "Report": "heading", "Costs": "table"}
    seen = Observation(controls=tuple(Control(id=f"c-{n}", name=n, kind=kind) for n, kind in kinds.items()))
    read, write = (dataclasses.replace(WRITE, name=name, controls=of) for name, of in (("a", ("table",)), ("b", ())))
    schema = answer_schema(asked(asks, tools=(read, write), observation=seen))
    forms = action_of(schema)["anyOf"]
    assert schema["$defs"]["Control1"] == {"type": "string", "enum": ["Sales", "Costs"]}
    assert forms[0]["properties"]["ControlText"] == {"$ref": "#/$defs/Control1"}
    assert forms[1]["properties"]["ControlText"] == {"$ref": "#/$defs/Control"}


def enumerated(schema):
    """Give the number of all values that are enumerated in a schema."""
    if isinstance(schema, dict):
        return len(schema.get("enum", ())) + sum(map(enumerated, schema.values()))
    return sum(map(enumerated, schema)) if isinstance(schema, list) else 0


def test_tools_on_the_same_controls_share_the_choice_of_them(asks):
    seen = Observation(controls=tuple(Control(id=f"c-{n}", name=f"{n}", kind="ab"[n % 2]) for n in range(150)))
    tools = tuple(dataclasses.replace(WRITE, name=f"tool_{n:02}", controls=("a",)) for n in range(20))
    schema = answer_schema(asked(asks, tools=tools, observation=seen))
    assert list(schema["$defs"]) == ["Control", "Control1", "Action"]
    assert enumerated(schema) < 300


def test_all_enumerations_together_are_within_what_providers_take(asks):
    kinds = "abcdefghijklmno"
    seen = Observation(controls=tuple(Control(id=f"c-{n}", name=f"{n}", kind=kinds[n % 15]) for n in range(150)))
    choice = {"type": "string", "enum": [f"value {n}" for n in range(100)]}
    tools = tuple(
        tool(f"tool_{n:02}", control_id={"type": "string"}, text=choice, rows=ROWS.schema["properties"]["rows"])
        for n in range(45)
    )
    some = tuple(
        dataclasses.replace(each, controls=tuple(kinds[n % 15] for n in range(place, place + 9)))
        for place, each in enumerate(tools)
    )
    schema = answer_schema(asked(asks, tools=some, observation=seen))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert 500 < enumerated(schema) < 1000
    assert len(action_of(schema)["anyOf"]) == 45


def test_a_tool_is_not_offered_where_there_is_no_control_of_its_kind(asks):
    chart = dataclasses.replace(WRITE, name="chart", controls=("chart",))
    assert offered_tools(asked(asks, tools=(chart, WRITE))) == (WRITE,)


def test_arguments_may_be_left_out_where_no_strict_mode_forbids_it(asks):
    form = action_of(answer_schema(asked(asks), all_required=False))["properties"]["Args"]
    assert form["required"] == ["text"]
    assert form["properties"]["bold"] == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}


def test_label_of_an_application_names_its_purpose(asks):
    seen = Observation(
        targets=(
            Target(id="a.docx", name="a.docx", kind=TargetKind.WINDOW, address="app/word/a.docx", server="documents"),
            Target(id="word", name="Word", kind=TargetKind.APPLICATION, address="app/word/*", server="documents"),
        )
    )
    schema = answer_schema(asked(asks, AgentKind.HOST, observation=seen))
    assert form_of(schema, "ASSIGN")["ControlText"]["enum"] == ["a.docx", "new empty Word"]


ROWS = tool(
    "insert", required=("rows",), rows={"type": "array", "items": {"$ref": "#/$defs/Row"}}, title={"type": "string"}
)
ROWS.schema["$defs"] = {"Row": {"type": "array", "items": {"type": ["string", "number"]}}}


def test_list_argument_may_be_a_reference_to_an_earlier_result(asks):
    form = action_of(answer_schema(asked(asks, tools=(ROWS,))))["properties"]["Args"]["properties"]
    assert form["rows"]["anyOf"][0] == {
        "type": "string",
        "enum": ["${steps.1.results.0.value.rows}", "${subtasks.1.output.cells}"],
    }
    assert form["rows"]["anyOf"][1]["type"] == "array"
    assert form["title"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_only_lists_that_an_argument_takes_are_named(asks):
    numbers = tool("sum", required=("of",), of={"type": "array", "items": {"type": "number"}})
    form = action_of(answer_schema(asked(asks, tools=(numbers,))))["properties"]["Args"]["properties"]
    assert form["of"] == {"type": "array", "items": {"type": "number"}}


def test_a_result_may_be_one_of_the_agents_own(asks):
    assert form_of(answer_schema(asked(asks)), "FINISH")["Result"]["anyOf"][0] == {
        "type": "string",
        "enum": ["${steps.1.results.0.value}"],
    }
    assert form_of(answer_schema(asked(asks, memory=())), "FINISH")["Result"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }


INVOICE = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["number"],
    "$defs": {"Line": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
}


def test_a_result_has_the_form_of_the_tasks_output(asks):
    options = form_of(answer_schema(asked(asks, output_schema=INVOICE)), "FINISH")["Result"]["anyOf"]
    assert options[0] == {"type": "string", "enum": ["${steps.1.results.0.value}"]}
    assert options[1]["required"] == ["number", "lines"]
    assert options[1]["properties"]["lines"]["anyOf"][0]["items"]["required"] == ["name"]
    whole = form_of(answer_schema(asked(asks, output_schema=INVOICE, memory=())), "FINISH")["Result"]
    assert whole == options[1]


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"anyOf": 3}, {"prefixItems": [{}], "type": "array"}], ids=str
)
def test_an_output_without_a_strict_form_is_free(asks, schema):
    result = form_of(answer_schema(asked(asks, output_schema=schema, memory=())), "FINISH")["Result"]
    assert {"type": "object", "additionalProperties": True} in result["anyOf"]


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({"type": "string"}, False),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"$ref": "#/$defs/Line"}, False),
        ({"enum": ["a", None]}, True),
        ({"const": "a"}, False),
        ({}, True),
    ],
    ids=str,
)
def test_null_is_dropped_where_it_is_not_allowed(part, kept):
    schema = {**INVOICE, "properties": {**INVOICE["properties"], "more": part}}
    given = {"number": None, "more": None, "other": None, "lines": [{"name": None}]}
    expected = {"number": None, "other": None, "lines": [{"name": None}]} | ({"more": None} if kept else {})
    assert without_nulls(given, schema, schema) == expected
    assert without_nulls([given], {"items": {"anyOf": [{"type": "null"}, schema]}}, schema) == [expected]


def kind(name, note, *required):
    return {
        "type": "object",
        "properties": {"kind": {"const": name}, "note": {"type": note}},
        "required": ["kind", *required],
    }


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    "other", [kind("b", ["string", "null"]), kind("b", ["string", "null"], "note")], ids=["optional", "required"]
)
def test_a_null_of_a_union_is_left_out_by_its_own_option(union, other):
    schema = {"items": {union: [{"$ref": "#/$defs/A"}, other]}, "$defs": {"A": kind("a", "string")}}
    given = [{"kind": "a", "note": None}, {"kind": "b", "note": None}, {"kind": "a", "note": "x"}]
    assert without_nulls(given, schema, schema) == [{"kind": "a"}, *given[1:]]


def test_all_options_leave_out_nulls_of_a_value_that_fits_none():
    schema = {"anyOf": [kind("a", "string"), kind("b", "string")]}
    assert without_nulls({"kind": "c", "note": None}, schema, schema) == {"kind": "c"}


def test_nulls_stay_where_a_schema_is_broken():
    schema = {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}], "$defs": {"n": {"$ref": "#"}}}
    assert without_nulls({"a": None}, schema, schema) == {"a": None}


READ = dataclasses.replace(WRITE, name="read", effect=Effect.READ)


def test_an_app_agent_that_can_read_does_not_finish_before_it_did_anything(asks):
    def offered(**more):
        return legal_statuses(asked(asks, **{"tools": (READ, WRITE), "memory": (), "step": 1, **more}))

    assert "FINISH" not in offered()
    assert "FINISH" in offered(tools=(WRITE,))
    assert "FINISH" in offered(observation=Observation())  # there is nothing to read
    assert "FINISH" in offered(kind=AgentKind.MOBILE)
    done = asks().memory
    assert "FINISH" in offered(memory=done, step=2)
    assert "FINISH" not in offered(memory=done, step=1)  # that was for an earlier subtask


def test_screenshot_is_unavailable_without_a_view(asks):
    assert "SCREENSHOT" in legal_statuses(asked(asks))
    assert "SCREENSHOT" not in legal_statuses(asked(asks, observation=Observation()))


@pytest.mark.parametrize("kind", [AgentKind.HOST, AgentKind.APP])
def test_pending_is_unavailable_when_unattended(asks, kind):
    assert "PENDING" in legal_statuses(asks(kind=kind, statuses=("CONTINUE", "PENDING")))
    assert legal_statuses(asks(kind=kind, statuses=("CONTINUE", "PENDING"), attended=False)) == ("CONTINUE",)


def test_pending_is_unavailable_after_an_unattended_note(asks):
    told = Observation(notes=(UNATTENDED,))
    before = tuple(record.model_copy(update={"observation": told}) for record in asks().memory)
    assert "PENDING" in legal_statuses(asked(asks))
    assert "PENDING" not in legal_statuses(asked(asks, observation=told))
    assert "PENDING" not in legal_statuses(asked(asks, memory=before))


def test_a_host_does_not_finish_with_a_subtask_that_failed(asks):
    def offered(*outcomes):
        (done,) = asks().subtasks
        subtasks = tuple(
            done.model_copy(update={"outcome": outcome, "number": n, "run_id": f"t~{n}"})
            for n, outcome in enumerate(outcomes, 1)
        )
        return legal_statuses(asked(asks, AgentKind.HOST, subtasks=subtasks))

    assert "FINISH" in offered()
    assert "FINISH" in offered(Outcome.FAILED, Outcome.FINISHED)
    assert "FINISH" not in offered(Outcome.FINISHED, Outcome.FAILED)


def test_a_control_is_not_asked_for_where_there_is_none(asks):
    note = tool("note", required=("text",), control_id={"type": "string", "default": ""}, text={"type": "string"})
    form = action_of(answer_schema(asked(asks, tools=(note,), observation=Observation())))
    assert list(form["properties"]) == ["Function", "Args"]


def test_schema_limits_actions_to_the_provider_s_maximum(asks):
    for most in (1, 10):
        assert form_of(answer_schema(asked(asks), actions=most))["Actions"]["maxItems"] == most
