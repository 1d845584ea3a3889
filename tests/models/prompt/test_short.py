"""Short requests, as small models are asked: the parts that they leave out, and those that they keep."""

from __future__ import annotations

import dataclasses

import pytest

from callboard.actors.commands import Toolbox
from callboard.actors.runtime import Lanes
from callboard.messages import (
    ESSENTIAL,
    Action,
    AgentKind,
    Control,
    Decision,
    Effect,
    Observation,
    ResultStatus,
    Target,
    TargetKind,
)
from callboard.models import ToolInfo
from callboard.models.prompt._answer_schema import answer_schema, legal_statuses, offered_tools, own_parameters
from callboard.models.prompt._prompt import prompt_of
from callboard.models.prompt._short import copied, likely_tools, shortened_request, tool_examples
from callboard.surfaces.browser import BrowserSurface
from callboard.surfaces.documents import DocumentSurface

TABLE = ToolInfo(
    name="insert_table",
    description="Insert rows.",
    schema={
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "title": {"type": "string", "default": ""},
            "control_id": {"type": "string", "default": ""},
            "control_name": {"type": "string", "default": ""},
        },
        "required": ["rows"],
    },
    effect=Effect.ONCE,
)


STATUSES = ("CONTINUE", "SCREENSHOT", "FINISH", "FAIL", "PENDING", "CONFIRM", "ERROR")
READ = ToolInfo(name="read_table", description="Read a table.", schema={"type": "object"}, effect=Effect.READ)


def told(request):
    short = shortened_request(request)
    prompt = prompt_of(short, short=True)
    return "\n\n".join((prompt.system, *prompt.user)), answer_schema(short)


def test_short_prompt_lists_tools_without_optional_parameters(asks):
    text, schema = told(asks(tools=(TABLE,)))
    assert "    rows: " in text
    assert "title" not in text
    form = schema["$defs"]["Action"]["properties"]
    assert list(form["Args"]["properties"]) == ["rows"]
    assert "ControlText" in form  # the control it may act on is still chosen


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"bold": {"type": "boolean"}, "size": {"type": "number"}}},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
            "required": ["c"],
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    ],
    ids=["none", "any of them", "one of two"],
)
def test_tool_with_unclear_requirements_is_listed_whole(asks, schema):
    whole = dataclasses.replace(TABLE, schema=schema)
    assert shortened_request(asks(tools=(whole,))).tools == (whole,)


def test_essential_optional_parameter_is_listed(asks):
    cell = {"type": "string", "default": "", ESSENTIAL: True}
    schema = {**TABLE.schema, "properties": {**TABLE.schema["properties"], "cell": cell}}
    _, answer = told(asks(tools=(dataclasses.replace(TABLE, schema=schema),)))
    assert list(answer["$defs"]["Action"]["properties"]["Args"]["properties"]) == ["cell", "rows"]


WINDOW = Target(
    id="a.docx",
    name="a.docx",
    kind=TargetKind.WINDOW,
    address="app/word/a.docx",
    server="documents",
    binds={"document": "a.docx"},
)
BOOK = WINDOW.model_copy(update={"address": "app/excel/book.xlsx"})


def parameters(tools):
    return {tool.name: set(own_parameters(tool)) for tool in tools}


def test_the_documents_tools_say_what_they_need(asks, tmp_path):
    surface = DocumentSurface(tmp_path)
    toolbox = Toolbox([surface], (), Lanes())
    offered = toolbox.actions(AgentKind.APP, WINDOW) | toolbox.actions(AgentKind.APP, BOOK)
    tools = tuple(tool.info for tool in offered.values())
    whole, short = parameters(tools), parameters(shortened_request(asks(tools=tools)).tools)
    assert short["write_range"] == {"values", "cell"}
    assert short["insert_paragraph"] == {"text", "position"}
    assert short["insert_chart"] == {"type", "title", "cells"}
    assert short["sort_range"] == {"by", "cells"}
    assert short["insert_pivot"] == {"rows", "values", "columns", "cells"}
    assert short["set_font"] == whole["set_font"]


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("Insert a pivot table with the sum of Amount by Region", "insert_pivot"),
        ("Create a pivot-table of the sales", "insert_pivot"),
        ("Refresh the pivot table", "edit_pivot"),
        ("Insert a table with the sales", "insert_table"),
        ("Draw a bar chart of the sales", "insert_chart"),
    ],
)
def test_pivot_table_is_no_table(asks, tmp_path, request_, name):
    toolbox = Toolbox([DocumentSurface(tmp_path)], (), Lanes())
    tools = tuple(tool.info for tool in toolbox.actions(AgentKind.APP, BOOK).values())
    kinds = ("sheet", "range", *(["pivot"] if "Refresh" in request_ else []))
    seen = Observation(controls=tuple(Control(id=f"{kind}-1", name=kind, kind=kind) for kind in kinds))
    request = asks(request=request_, tools=tools, observation=seen, memory=(), subtasks=(), step=1)
    assert next(tool.name for tool in likely_tools(request)) == name


def test_tools_for_dialogs_are_offered_while_one_is_open(asks):
    toolbox = Toolbox([BrowserSurface()], (), Lanes())
    tab = WINDOW.model_copy(update={"address": "app/browser/tab-1", "server": "browser"})
    page = Observation(controls=(Control(id="e1", name="Send", kind="button"),))
    dialog = Observation(controls=(Control(id="dialog", name="Send it?", kind="page dialog"),))
    for kind, seen, is_offered in (
        (AgentKind.APP, page, False),
        (AgentKind.APP, dialog, True),
        (AgentKind.OPERATOR, Observation(), True),
    ):
        tools = tuple(tool.info for tool in toolbox.actions(kind, tab).values())
        request = asks(kind=kind, request="Accept what it asks for.", tools=tools, observation=seen, memory=())
        assert ("accept_dialog" in [tool.name for tool in offered_tools(request)]) is is_offered
        assert ("accept_dialog" in [tool.name for tool in likely_tools(request)]) is is_offered


def test_parameter_named_in_an_error_is_listed_from_then_on(asks):
    for tool, kept in (("insert_table", {"rows", "title"}), ("read_table", {"rows"})):
        memory = after(asks, tool, status=ResultStatus.FAILURE, error="it has none; name it in title")
        (short,) = shortened_request(asks(memory=memory, tools=(TABLE,), step=2)).tools
        assert {*own_parameters(short)} == kept


def test_short_prompt_omits_the_request_of_the_whole_task(asks):
    request = asks(task_request="read the table and make a chart", request="make a chart", plan=("read the table",))
    assert "read the table and make a chart" in prompt_of(request).user[0]
    text, _ = told(request)
    assert "read the table and make a chart" not in text
    assert "Your plan so far" not in text


def test_short_prompt_shows_steps_without_thoughts(asks):
    decision = Decision(
        status="CONTINUE",
        observation="I see it.",
        thought="I want it.",
        comment="I say it.",
        plan=("I plan it.",),
        actions=(Action(tool="read", arguments={"all": True}, call_id="t~2.1.0"),),
    )
    request = asks()
    request = dataclasses.replace(request, memory=(request.memory[0].model_copy(update={"decision": decision}),))
    assert "I want it." in prompt_of(request).user[0]
    text, _ = told(request)
    assert not [said for said in ("I see it.", "I want it.", "I say it.", "I plan it.") if said in text]
    assert 'read {"all": true} → returned {"rows": [[1, 2.5], ["a"]]}' in text
    assert request.memory[0].decision.thought == "I want it."  # the agent's own memory stays as it is


def test_short_prompt_replaces_data_with_its_reference(asks):
    text, _ = told(asks())
    assert '"cells": "${subtasks.1.output.cells}"' in text
    assert '"rows": 4' in text
    assert '- "${subtasks.1.output.cells}": 1 rows, the first ["a", 1]' in text


def test_short_host_prompt_shows_the_data_in_full(asks):
    host = asks(kind=AgentKind.HOST)
    assert '"cells": [["a", 1]]' in told(host)[0]


def test_member_unfit_for_a_reference_is_shown_in_full(asks):
    request = asks()
    left = request.subtasks[0].model_copy(update={"output": {"a.b": 5, "a": {"b": [1]}}})
    text, _ = told(dataclasses.replace(request, subtasks=(left,)))
    assert '"a.b": 5, "a": {"b": "${subtasks.1.output.a.b}"}' in text


def begun(asks, **fields):
    """Make the request of a first step, with all statuses and tools."""
    return asks(**{"statuses": STATUSES, "step": 1, "memory": (), "tools": (TABLE, READ), **fields})


def test_an_agent_first_tries_something(asks):
    assert legal_statuses(begun(asks), short=True) == ("CONTINUE",)
    schema = answer_schema(begun(asks), short=True)
    assert schema["properties"]["Decision"]["required"] == ["Plan", "Status", "Actions"]
    assert "Status can't be SCREENSHOT, FINISH, FAIL, PENDING, CONFIRM or ERROR now." in told(begun(asks))[0]


def test_without_a_tool_that_reads_only_fail_and_error_wait(asks):
    request = begun(asks, kind=AgentKind.MOBILE, tools=(TABLE,), statuses=("CONTINUE", "FINISH", "FAIL", "PENDING"))
    assert legal_statuses(request, short=True) == ("CONTINUE", "FINISH", "PENDING")


UNSEEN = Observation(notes=("it can't be seen any more: gone",))
NEEDS_A_CHART = dataclasses.replace(READ, controls=("chart",))


@pytest.mark.parametrize(
    "fields",
    [
        {"step": 2, "memory": None},
        {"reasons": ("no such tool",)},
        {"observation": UNSEEN},
        {"tools": (NEEDS_A_CHART,)},
        {"tools": ()},
        {"kind": AgentKind.HOST},
    ],
    ids=["a step", "a repair", "a failed look", "no tool that fits", "no tool", "a host"],
)
def test_after_a_try_or_without_one_to_make_an_agent_may_fail(asks, fields):
    memory = {"memory": asks().memory} if "memory" in fields else {}
    assert "FAIL" in legal_statuses(begun(asks, **{**fields, **memory}), short=True)


def test_an_answer_s_own_texts_have_a_longest_length(asks):
    schema = answer_schema(asks(statuses=STATUSES, tools=(TABLE,)), short=True, all_required=False)
    texts = schema["properties"]
    assert [texts[key]["maxLength"] for key in ("Observation", "Thought", "Comment")] == [200, 250, 120]
    results = [
        part for form in texts["Decision"]["anyOf"] for part in form["properties"].get("Result", {}).get("anyOf", ())
    ]
    assert {"type": "string", "maxLength": 600} in results
    assert all(form["properties"]["Plan"]["items"]["maxLength"] == 100 for form in texts["Decision"]["anyOf"])


def test_a_strict_mode_gets_no_lengths(asks):
    assert "maxLength" not in str(answer_schema(asks(statuses=STATUSES, tools=(TABLE,)), short=True))


def test_short_prompt_omits_false_and_empty_details(asks):
    control = Control(id="s", name="S", kind="sheet", detail={"protected": False, "note": "", "rows": 0, "used": "A1"})
    request = asks(observation=Observation(window={"dirty": False, "path": "a.xlsx"}, controls=(control,)))
    assert '- "S": sheet (id s, rows 0, used "A1")' in told(request)[0]
    assert "dirty" not in told(request)[0]
    assert "dirty" in prompt_of(request).user[0]


SORT = ToolInfo(
    name="sort_range",
    description="Sort the rows of a range.",
    schema={
        "type": "object",
        "properties": {
            "by": {"type": "array", "items": {"$ref": "#/$defs/Key"}, "description": "The columns."},
            "header": {"type": "boolean", "default": True},
            "control_id": {"type": "string"},
        },
        "required": ["by", "control_id"],
        "$defs": {
            "Key": {
                "type": "object",
                "properties": {
                    "column": {"type": "string", "description": "Its header; or its letter."},
                    "order": {"enum": ["up", "down"]},
                    "strict": {"type": "boolean"},
                },
            }
        },
    },
    effect=Effect.IDEMPOTENT,
    controls=("range",),
)
RANGE = Observation(controls=(Control(id="range-1", name="Stock", kind="range"),))


def shown(request):
    """Give the examples of a short prompt: their situations and answers."""
    return {when: answer["Decision"] for when, answer in tool_examples(shortened_request(request))}


def test_examples_call_the_tool_that_the_subtask_means(asks):
    request = asks(request="Sort it by price", tools=(TABLE, SORT, READ), observation=RANGE, step=1)
    examples = shown(request)
    (action,) = examples["sort_range does what the subtask asks for, and was not called:"]["Actions"]
    key = {"column": "<Its header>", "order": "<up or down>", "strict": "<true or false>"}
    assert action == {"Function": "sort_range", "ControlText": "Stock", "Args": {"by": [key]}}
    assert len(examples) == 2
    assert "library" not in told(request)[0]


def test_an_example_s_control_has_its_name_only_if_it_is_the_one_that_fits(asks):
    two = Observation(controls=(*RANGE.controls, Control(id="range-2", name="Other", kind="range")))
    (*_, decision) = shown(asks(request="Sort it", tools=(SORT,), step=1, observation=two)).values()
    assert decision["Actions"][0]["ControlText"] == "<the range, as it is listed>"


def test_an_example_of_rows_names_the_columns_that_are_seen(asks):
    rows = {"header": {"A": "Item", "B": "Price"}}
    request = asks(request="Add a row", tools=(TABLE,), subtasks=(), step=1)
    for detail, line in (
        (rows, ["<Item>", "<Price>"]),
        ({"first_rows": {"A2": ["Lamp", 3]}}, ["<value 1>", "<value 2>"]),
    ):
        seen = Observation(controls=(Control(id="range-1", name="Stock", kind="range", detail=detail),))
        (*_, decision) = shown(dataclasses.replace(request, observation=seen)).values()
        assert decision["Actions"][0]["Args"] == {"rows": [line]}


def test_placeholders_in_a_call_are_found(asks):
    request = asks(request="Add a row", tools=(TABLE,), subtasks=(), step=1)
    assert copied(request, [{"rows": [["<rows>", "5"]]}]) == ["<rows>"]
    assert copied(request, [{"rows": [["<b>", "rows"]]}]) == []


def test_short_prompt_omits_the_list_of_uncallable_tools(asks):
    request = asks(request="Sort it", tools=(SET_CHART, READ), observation=RANGE, step=1)
    assert "These tools can't be called yet" in prompt_of(request).user[0]
    assert "These tools can't be called yet" not in told(request)[0]


def test_a_tool_that_does_what_optional_parameters_say_keeps_them(asks):
    schema = {
        "type": "object",
        "properties": {"bold": {"type": "boolean"}, "cells": {"type": "string", ESSENTIAL: True}},
    }
    tool = dataclasses.replace(SORT, name="format_cells", description="Change formats.", schema=schema)
    (short,) = shortened_request(asks(tools=(tool,))).tools
    assert {*short.schema["properties"]} == {"bold", "cells"}
    (*_, decision) = shown(asks(request="Make it bold", tools=(tool,), observation=RANGE, step=1)).values()
    assert decision["Actions"][0]["Args"] == {"cells": "<cells>", "bold": "<true or false>"}


def test_an_example_passes_on_the_data_that_fits(asks):
    left = asks().subtasks[0].model_copy(update={"output": {"rows": [["a"], ["b"]]}})
    (*_, decision) = shown(asks(request="Insert rows", tools=(TABLE,), subtasks=(left,))).values()
    assert decision["Actions"][0]["Args"] == {"rows": "${subtasks.1.output.rows}"}


@pytest.mark.parametrize(
    ("request_", "results"),
    [("How many are there?", ["<the answer, in words>"]), ("Read it", ["${steps.1.results.0.value}", None])],
    ids=["a question", "no question"],
)
def test_examples_end_as_the_subtask_asks(asks, request_, results):
    ends = [each for each in shown(asks(request=request_, tools=(READ,))).values() if each["Status"] == "FINISH"]
    assert [each["Result"] for each in ends] == results


def test_a_question_is_answered_in_words(asks):
    memory = (asks().memory[0].model_copy(update={"results": asks().memory[0].results}),)
    request = asks(request="How many rows?", memory=memory, tools=(dataclasses.replace(READ, name="read"),))
    assert "It asks a question: with FINISH, Result is the answer to it, in words" in told(request)[0]
    assert "hands over all that it read" not in told(request)[0]


SET_CHART, SET_CELL, SET_CELL_FORMAT = (
    ToolInfo(name=name, description="Set it.", schema={"type": "object"}, effect=Effect.ONCE, controls=(kind,))
    for name, kind in (("set_chart", "chart"), ("set_cell", "cell"), ("set_cell_format", "cell"))
)


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ("Sort it by price", ["sort_range"]),
        ("Add three new rows", ["insert_table"]),
        ("Arrange the rows", ["sort_range"]),
        ("Make a subtable", ["insert_table"]),
        ("Change the rows of the chart", ["set_chart"]),
        ("Change the price", ["set_cell", "set_chart"]),
        ("Which row has most?", ["read_table"]),
        ("Wohin?", ["read_table"]),
        ("Los geht es", []),
    ],
)
def test_the_likely_tools_are_those_with_the_subtask_s_words(asks, request_, names):
    seen = Observation(
        controls=(*RANGE.controls, *(Control(id=kind, name=kind, kind=kind) for kind in ("chart", "cell")))
    )
    tools = (TABLE, SORT, READ, SET_CHART, SET_CELL, SET_CELL_FORMAT)
    assert [tool.name for tool in likely_tools(asks(request=request_, tools=tools, observation=seen, step=1))] == names


CHART = ToolInfo(
    name="insert_chart",
    description="Insert a chart of a range or table.",
    schema={"type": "object", "properties": {"control_id": {"type": "string"}}, "required": ["control_id"]},
    effect=Effect.ONCE,
    controls=("range", "table"),
)
RENAME = ToolInfo(name="rename_sheet", description="Rename a sheet.", schema={"type": "object"}, effect=Effect.ONCE)


@pytest.mark.parametrize(
    ("request_", "is_named"),
    [
        ("Mark order P-9 as checked", False),
        ("Order the rows by date", True),
        ("Put the order of order P-9", True),
    ],
)
def test_header_that_only_names_a_row_counts_for_no_tool(asks, request_, is_named):
    tools = tuple(
        ToolInfo(name=name, description=about, schema={"type": "object"}, effect=Effect.IDEMPOTENT)
        for name, about in (("sort_range", "Put rows in order."), ("write_cells", "Write cells."))
    )
    header = {"header": {"A": "Order", "B": "Customer"}}
    seen = Observation(controls=(Control(id="range-1", name="Orders!A1:B6", kind="range", detail=header),))
    likely = likely_tools(asks(request=request_, tools=tools, observation=seen, step=1))
    assert ("sort_range" in [tool.name for tool in likely]) is is_named


def test_a_tool_without_its_control_comes_after_the_one_that_makes_it(asks):
    request = begun(asks, request="Create a bar chart", tools=(CHART, RENAME, TABLE, READ), observation=Observation())
    assert [tool.name for tool in likely_tools(request)] == ["insert_table"]
    decision = shown(request)["insert_chart, after insert_table, does what the subtask asks for, and was not called:"]
    assert decision["Plan"] == ["Call insert_table", "Call insert_chart"]
    assert [action["Function"] for action in decision["Actions"]] == ["insert_table"]
    assert "insert_chart comes later" in told(request)[0]
    assert "The words of your subtask" not in told(request)[0]
    there = dataclasses.replace(request, observation=RANGE)
    assert [tool.name for tool in likely_tools(there)] == ["insert_chart"]


def test_of_tools_that_come_first_the_one_that_takes_most_data_is_shown(asks):
    titles = {"type": "array", "items": {"type": "string"}}
    write = dataclasses.replace(TABLE, name="write_range")
    table = dataclasses.replace(TABLE, schema={"properties": {**TABLE.schema["properties"], "header": titles}})
    left = asks().subtasks[0].model_copy(update={"output": {"header": ["a", "b"], "rows": [["c", "d"]]}})
    request = begun(asks, request="Create a bar chart", tools=(CHART, write, table), subtasks=(left,))
    request = dataclasses.replace(request, observation=Observation())
    assert [tool.name for tool in likely_tools(request)] == ["insert_table"]
    assert "and there is none yet: call insert_table first.\n" in told(request)[0]
    without = dataclasses.replace(request, subtasks=())
    assert [tool.name for tool in likely_tools(without)] == ["insert_table", "write_range"]


@pytest.mark.parametrize("request_", ["Rename the sheet", "Do not create a chart", "Which chart is there?"])
def test_no_other_subtask_is_begun_with_another_tool(asks, request_):
    request = begun(asks, request=request_, tools=(CHART, RENAME, TABLE, READ), observation=Observation())
    assert not any("after" in when for when in shown(request))


def after(asks, tool, **fields):
    """Make the memory of a step that called a tool, with this result."""
    result = asks().memory[0].results[0].model_copy(update={"tool": tool, **fields})
    return (asks().memory[0].model_copy(update={"results": (result,)}),)


def test_after_a_failed_call_another_one_is_suggested(asks):
    memory = after(asks, "read", status=ResultStatus.FAILURE, error="no such cell")
    hint = "Your steps tell why it FAILED: call it again without that mistake, or call another tool."
    assert hint in told(asks(memory=memory))[0]
    assert hint not in prompt_of(asks(memory=memory)).user[-1]


@pytest.mark.parametrize(
    ("request_", "tool", "hinted"),
    [
        ("Sort it by price", "read_table", True),
        ("Sort it by price", "sort_range", False),
        ("Do not sort it", "read_table", False),
        ("Read the table", "read_table", False),
        ("What would you change?", "read_table", False),
    ],
)
def test_after_reading_a_change_is_still_to_be_made(asks, request_, tool, hinted):
    memory = tuple(record.model_copy(update={"observation": RANGE}) for record in after(asks, tool))
    request = asks(request=request_, memory=memory, tools=(SORT, READ), statuses=STATUSES, observation=RANGE)
    hint = "So far you only read, and changed nothing. Next is sort_range.\n"
    assert (hint in told(request)[0]) is hinted


def test_a_tool_without_required_parameters_keeps_the_essential_ones(asks):
    cells = {"type": "string", ESSENTIAL: True}
    schema = {"type": "object", "properties": {"cells": cells, "sheet": {"type": "string"}, "control_id": {}}}
    (tool,) = shortened_request(asks(tools=(dataclasses.replace(READ, schema=schema),))).tools
    assert list(tool.schema["properties"]) == ["cells", "control_id"]


def test_before_a_first_call_the_likely_tools_are_named(asks):
    hint = "The words of your subtask fit sort_range: call that, with what your subtask says.\n"
    request = begun(asks, request="Sort it by price", tools=(SORT, READ), observation=RANGE)
    assert hint in told(request)[0]
    assert hint not in told(dataclasses.replace(request, memory=asks().memory, step=2))[0]
    assert hint not in told(dataclasses.replace(request, observation=Observation()))[0]  # it can't be called yet
    assert "The words of" not in told(dataclasses.replace(request, request="Los geht es"))[0]
    assert "The words of" not in prompt_of(request).user[-1]


def test_examples_show_two_tools_when_none_matches_the_request(asks):
    examples = shown(asks(request="Los geht es", tools=(TABLE, SORT, READ)))
    called = [each["Actions"][0]["Function"] for each in examples.values() if "Actions" in each]
    assert called == ["insert_table", "read_table"]


def test_fail_is_unavailable_after_one_failed_call(asks):
    failed = after(asks, "read_table", status=ResultStatus.FAILURE, error="no such cell")
    request = begun(asks, step=2, memory=failed)
    assert legal_statuses(request, short=True) == ("CONTINUE",)
    assert "FAIL" in legal_statuses(dataclasses.replace(request, step=3, memory=failed * 2), short=True)
    skipped = after(asks, "read_table", status=ResultStatus.SKIPPED)
    assert "FAIL" in legal_statuses(dataclasses.replace(request, memory=skipped), short=True)


def test_a_tool_that_replaces_has_to_say_where(asks):
    cell = {"type": "string", "default": "", ESSENTIAL: True}
    schema = {**TABLE.schema, "properties": {**TABLE.schema["properties"], "cell": cell}}
    adds = dataclasses.replace(TABLE, schema=schema)
    sets = dataclasses.replace(adds, name="write", effect=Effect.IDEMPOTENT)
    required = [tool.schema["required"] for tool in shortened_request(asks(tools=(adds, sets))).tools]
    assert required == [["rows"], ["rows", "cell"]]


def test_a_control_that_is_not_needed_may_be_left_out(asks):
    schema = answer_schema(asks(tools=(TABLE,)), short=True, all_required=False)
    assert schema["$defs"]["Action"]["required"] == ["Function", "Args"]
    (*_, decision) = shown(asks(request="Add rows", tools=(TABLE,))).values()
    assert "ControlText" not in decision["Actions"][0]


@pytest.mark.parametrize(
    ("request_", "missed"),
    [("Add a row at the end of the table", False), ("Add the table", True), ("Make a table of the prices", True)],
)
def test_a_thing_that_the_subtask_calls_the_is_not_to_be_made(asks, request_, missed):
    memory = after(asks, "read_table")
    request = asks(request=request_, tools=(TABLE, READ), subtasks=(), memory=memory, observation=RANGE)
    assert ("Not called yet: insert_table" in told(request)[0]) is missed


def test_no_tool_that_makes_a_thing_is_likely_where_the_thing_is_there(asks):
    append = dataclasses.replace(TABLE, name="append_rows", description="Add rows at the end of a table.")
    named = likely_tools(asks(request="Add it at the end of the table", tools=(TABLE, append), subtasks=()))
    assert named[0] is append
