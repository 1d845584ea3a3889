"""Build the JSON Schema of an answer for providers' strict modes.

It allows only the statuses, tools, controls and targets that are available at this step. Every property is required, or
null if it does not apply, and no other is allowed. Only tools whose own schema has no strict form take free arguments.
Repeated parts are defined once, because providers limit the size of a schema and its number of enumerated values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from callboard.messages import UNATTENDED, AgentStatus, Effect, ResultStatus, is_of_task, open_failures
from callboard.models._computer_actions import SCREENSHOT, argument_forms
from callboard.models._references import References, fitting
from callboard.models._responses import AppResponse
from callboard.models.prompt._judge_prompt import judge_schema
from callboard.models.prompt._labels import labelled
from callboard.models.prompt._proposed_checks import checks_schema
from callboard.models.prompt._strict import (
    ANY,
    FREE,
    LooseError,
    few,
    object_of,
    or_null,
    or_one_of,
    plain,
    strict,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.messages import Control, StepRecord, SubtaskResult
    from callboard.models._model import ModelRequest, ToolInfo


Schema = dict[str, Any]

CONTROL = ("control_id", "control_name")
"""Parameters that identify a control; an answer names the control once, beside the arguments."""

MOST_VALUES = 500
"""Limit of enumerated values besides controls, targets, tools and results; OpenAI accepts 1000."""
MOST_RESULTS = 50
"""Maximum number of references to results in a strict mode, newest first."""
MOST_ACTIONS = 10
"""Maximum number of actions in one answer."""
MOST_TOOLS = 60
"""Maximum number of tools with their own form; more tools share one form."""

KEYS = ("Observation", "Thought", "Decision", "Comment")
"""The keys of an answer; the reasoning comes first."""
IN_DECISION = ("Plan", "Status")
"""The first keys of each decision; the plan precedes the status, as an open plan excludes FINISH."""
_ACTIONS = ("Actions",)
_BELONGS: dict[str, tuple[str, ...]] = {
    AgentStatus.CONTINUE: _ACTIONS,
    AgentStatus.CONFIRM: _ACTIONS,
    AgentStatus.ASSIGN: ("ControlText", "Current Sub-Task"),
    AgentStatus.SCREENSHOT: ("ControlReannotate",),
    AgentStatus.PENDING: ("Questions",),
    AgentStatus.FINISH: ("Result",),
}
"""The further keys of a decision, by status."""

MOST_SHORT = {"Observation": 200, "Thought": 250, "Comment": 120, "Plan": 100, "Text": 600}
"""Maximum numbers of characters in a short answer; small models repeat themselves endlessly. `Text` is for others."""

_TEXT: Schema = {"type": "string"}
_LINES: Schema = {"type": "array", "items": _TEXT, "maxItems": 12}
_SOME: Schema = {**_LINES, "minItems": 1}
_NO_LINES: Schema = {**_LINES, "maxItems": 0}
_PLANS: dict[str, Schema] = {
    AgentStatus.CONTINUE: _SOME,
    AgentStatus.CONFIRM: _SOME,
    AgentStatus.ASSIGN: _SOME,
    AgentStatus.FINISH: _NO_LINES,
}
"""The schema of the plan by status: not empty, or empty."""
_NULL: Schema = {"type": "null"}
_CONTROL: Schema = {"$ref": "#/$defs/Control"}
_ACTION: Schema = {"$ref": "#/$defs/Action"}


def answer_schema(
    request: ModelRequest, *, all_required: bool = True, actions: int = MOST_ACTIONS, short: bool = False
) -> Schema:
    """Build the schema of an answer: reasoning first, then the decision.

    Args:
        request: The request to the model.
        all_required: Whether optional arguments must be present as null, as strict modes require. Small models answer
            better if they may omit them, because they fill in every argument that is required.
        actions: The maximum number of actions in one answer.
        short: Whether CONTINUE comes first (see `legal_statuses`), and the answer's own texts have a maximum length,
            unless it is for a strict mode.
    """
    if request.evidence is not None:
        return judge_schema(request.evidence)
    labels = choices(labelled(request.observation.controls))
    build = _Forms(request, _CONTROL if labels else _TEXT, all_required=all_required, actions=actions, short=short)
    statuses = legal_statuses(request, short=short)
    forms = [build.decision(status) for status in statuses]
    forms += [build.group()] if AgentStatus.ASSIGN in statuses and not short and offers_group(request) else []
    more = {"Decision": forms[0] if len(forms) == 1 else {"anyOf": forms}}
    more |= {"Checks": checks_schema(all_required=all_required)} if request.proposes else {}
    schema = object_of({key: more.get(key) or build.text(key) for key in keys_of(proposes=request.proposes)})
    action = {"Action": build.action()} if any("Actions" in form["properties"] for form in forms) else {}
    defs = {**({"Control": {"type": "string", "enum": labels}} if labels else {}), **build.controls, **action}
    return {**schema, "$defs": defs} if defs else schema


def keys_of(*, proposes: bool) -> tuple[str, ...]:
    """Return the keys of an answer, in order."""
    index = KEYS.index("Decision") + 1
    return (*KEYS[:index], "Checks", *KEYS[index:]) if proposes else KEYS


def offers_group(request: ModelRequest) -> bool:
    """Return whether several subtasks may be assigned at once.

    They need targets that do not exclude each other.
    """
    return request.most_subtasks > 1 and len({target.lease_key for target in request.observation.targets}) > 1


def own_steps(request: ModelRequest) -> tuple[StepRecord, ...]:
    """Return the steps taken for this request; the memory goes back further."""
    return request.memory[len(request.memory) - request.step + 1 :] if request.step > 1 else ()


def own_subtasks(request: ModelRequest) -> tuple[SubtaskResult, ...]:
    """Return the subtasks of this task.

    Those of earlier tasks in the conversation are left out.
    """
    return tuple(done for done in request.subtasks if is_of_task(done.run_id, request.task_id))


def parts_of(request: ModelRequest) -> dict[str, tuple[str, ...]]:
    """Return the further keys of a decision by status.

    The statuses are those allowed in the agent's state.
    """
    parts = {status: _BELONGS.get(status, ()) for status in request.statuses}
    return parts if request.tools else {status: () if keys == _ACTIONS else keys for status, keys in parts.items()}


def legal_statuses(request: ModelRequest, *, short: bool = False) -> tuple[str, ...]:
    """Return the legal statuses without those that make no sense now.

    A `short` prompt offers no FAIL and no ERROR until something was tried, and CONTINUE alone if there is a tool that
    reads: small models say FAIL at the sight of many requests, and are right as soon as they can't.

    - ASSIGN needs a target.
    - A HostAgent can't FINISH if its last subtask did not, or one of those that it assigned together.
    - An AppAgent can't FINISH before any action if it has a tool that reads: it has seen only the names of controls,
      not their content.
    - SCREENSHOT needs controls, and for an AppAgent an earlier action; an operator has an action for it.
    - PENDING needs a person who answers.
    """
    observations = (request.observation, *(record.observation for record in request.memory))
    unattended = any(UNATTENDED in observation.notes for observation in observations)
    guesses = set() if request.attended and not unattended else {AgentStatus.PENDING}
    if request.is_host:
        guesses |= set() if request.observation.targets else {AgentStatus.ASSIGN}
        guesses |= {AgentStatus.FINISH} if open_failures(own_subtasks(request)) else set()
    results = [result for record in own_steps(request) for result in record.results]
    if issubclass(request.response, AppResponse) and all(result.status is ResultStatus.SKIPPED for result in results):
        reads = any(tool.effect is Effect.READ for tool in offered_tools(request))
        guesses |= {AgentStatus.SCREENSHOT, AgentStatus.FINISH} if reads else {AgentStatus.SCREENSHOT}
    guesses |= set() if request.observation.controls and not request.is_operator else {AgentStatus.SCREENSHOT}
    if short and AgentStatus.CONTINUE in request.statuses and is_untried(request):
        reads = any(tool.effect is Effect.READ for tool in offered_tools(request))
        guesses |= {*AgentStatus} - {AgentStatus.CONTINUE} if reads else {AgentStatus.FAIL, AgentStatus.ERROR}
    return tuple(status for status in request.statuses if status not in guesses) or request.statuses


def is_untried(request: ModelRequest) -> bool:
    """Return whether an agent of a target has yet to try something.

    An answer that asked a person, an answer that was sent back, and a look that failed count as tries. One failed call
    does not, because its error says how to call again. Without a tool that can be called there is nothing to try.
    """
    observation, steps = request.observation, own_steps(request)
    unseen = bool(observation.notes) and not (
        observation.controls or observation.text or observation.picture or observation.window
    )
    if request.is_host or request.reasons or unseen or len(steps) > 1:
        return False
    failed = all(
        record.results and all(result.status is ResultStatus.FAILURE for result in record.results) for record in steps
    )
    return failed and bool(offered_tools(request))


def offered_tools(request: ModelRequest) -> tuple[ToolInfo, ...]:
    """Return the callable tools by name, given the visible controls.

    An operator sees none: it may call a tool that takes no control, whatever kind has to be there.
    """
    controls = request.observation.controls
    usable = (
        tool
        for tool in request.tools
        if any(fits(tool, control) for control in controls)
        or not (needs_control(tool) or (tool.controls and (takes_control(tool) or not request.is_operator)))
    )
    return tuple(sorted(usable, key=lambda tool: tool.name))


def choices(labels: Mapping[str, object]) -> list[str]:
    """Return the labels for an enumeration; none if there are too many."""
    return list(labels) if few(labels) else []


def takes_control(tool: ToolInfo) -> bool:
    """Return whether a tool can act on a control."""
    return tool.names_controls and CONTROL[0] in tool.schema.get("properties", {})


def needs_control(tool: ToolInfo) -> bool:
    """Return whether a tool requires a control."""
    return tool.names_controls and CONTROL[0] in tool.schema.get("required", ())


def own_parameters(tool: ToolInfo) -> Schema:
    """Return the schemas of a tool's own parameters.

    Parameters that identify a control are left out.
    """
    properties = tool.schema.get("properties", {})
    hidden = CONTROL if takes_control(tool) else ()
    return {name: part for name, part in properties.items() if name not in hidden}


def without_control(tool: ToolInfo) -> ToolInfo:
    """Return a tool for a model that sees no controls.

    It has no parameters for a control.
    """
    return replace(tool, schema={**tool.schema, "properties": own_parameters(tool)})


class _Forms:
    """Builder of the forms of a decision on one request."""

    def __init__(
        self, request: ModelRequest, control: Schema, *, all_required: bool, actions: int, short: bool
    ) -> None:
        self._request = request
        self._bounds = short and not all_required  # providers' strict modes refuse a text's length
        self._control = control
        self._all_required = all_required
        self._most = actions
        self._tools = offered_tools(request)
        self._parts = References(request.memory, request.subtasks).parts()
        self._remaining_values = MOST_VALUES
        self.controls: dict[str, Schema] = {}
        """Definitions of choices among some of the controls; filled by `action`."""

    def text(self, key: str = "Text") -> Schema:
        """Build the schema of a text that the model writes."""
        return {**_TEXT, "maxLength": MOST_SHORT[key]} if self._bounds else _TEXT

    def decision(self, status: str) -> Schema:
        """Build the form of a decision with a certain status."""
        plan = {**_PLANS.get(status, _LINES), "items": self.text("Plan")}
        form: Schema = {"Plan": plan, "Status": {"type": "string", "enum": [status]}}
        match status:
            case AgentStatus.CONTINUE | AgentStatus.CONFIRM if self._tools:
                form["Actions"] = {"type": "array", "items": _ACTION, "minItems": 1, "maxItems": self._most}
            case AgentStatus.SCREENSHOT:
                form["ControlReannotate"] = {"type": "array", "items": self._control, "minItems": 1, "maxItems": 20}
            case AgentStatus.ASSIGN:
                form |= self._assignment()
            case AgentStatus.PENDING:
                question = object_of({"text": self.text(), "choices": _LINES})
                form["Questions"] = {"type": "array", "items": question, "minItems": 1, "maxItems": 5}
            case AgentStatus.FINISH:
                form["Result"] = self._result()
        return object_of(form)

    def _assignment(self) -> Schema:
        targets = choices(labelled(self._request.observation.targets))
        return {
            "ControlText": {"type": "string", "enum": targets} if targets else _TEXT,
            "Current Sub-Task": self.text(),
        }

    def group(self) -> Schema:
        """Build the form of an ASSIGN of several subtasks."""
        places: Schema = {"type": "array", "items": {"type": "integer"}, "maxItems": self._request.most_subtasks}
        subtask = object_of({**self._assignment(), "After": places, "AfterAny": places})
        group: Schema = {"type": "array", "items": subtask, "minItems": 2, "maxItems": self._request.most_subtasks}
        plan = {**_SOME, "items": self.text("Plan")}
        status = {"type": "string", "enum": [AgentStatus.ASSIGN.value]}
        return object_of({"Plan": plan, "Status": status, "Sub-Tasks": group, "StopAtFailure": {"type": "boolean"}})

    def _result(self) -> Schema:
        """Build the schema of a result: text, reference, or null (last result)."""
        references = list(References(self._request.memory, ()).results())[:MOST_RESULTS]
        schema = self._request.output_schema
        if schema is not None:
            return or_one_of(_typed(schema), references)
        named = [{"type": "string", "enum": references}] if references else []
        return {"anyOf": [*named, self.text(), _NULL]}

    def action(self) -> Schema:
        """Build the form of an action.

        It is defined once because providers limit a schema's size.
        """
        if len(self._tools) > MOST_TOOLS:
            named = {"type": "string", "enum": [tool.name for tool in self._tools]}
            return object_of({"Function": named, "ControlText": or_null(self._control), "Args": FREE})
        forms = [self._action(tool) for tool in self._tools]
        if self._request.is_operator:
            forms.append(object_of({"action": {"type": "string", "enum": [SCREENSHOT]}}))
        return forms[0] if len(forms) == 1 else {"anyOf": forms}

    def _action(self, tool: ToolInfo) -> Schema:
        form = argument_forms(tool.name) if self._request.is_operator else None
        if form is not None:
            return self._computer_use(tool, form)
        properties: Schema = {"Function": {"type": "string", "enum": [tool.name]}}
        if takes_control(tool) and self._request.observation.controls:
            control = self._control_of(tool)
            properties["ControlText"] = control if needs_control(tool) else or_null(control)
        properties["Args"] = self._arguments(tool)
        optional = {"ControlText"} if self._bounds and not needs_control(tool) else set()  # else they fill it in
        return {**object_of(properties), "required": [name for name in properties if name not in optional]}

    def _computer_use(self, tool: ToolInfo, form: Schema) -> Schema:
        """Build the flat form of an operator's action.

        It has the arguments that the tool takes.
        """
        parameters = tool.schema.get("properties", {})
        properties = {name: part for name, part in form["properties"].items() if name in parameters}
        required = [name for name in form["required"] if name in properties]
        arguments = self._arguments(replace(tool, schema={**form, "properties": properties, "required": required}))
        named = {"action": {"type": "string", "enum": [tool.name]}}
        schema = object_of({**named, **arguments["properties"]})
        return {**schema, "required": ["action", *arguments["required"]]}

    def _control_of(self, tool: ToolInfo) -> Schema:
        """Return the choice among the controls of a tool's kinds."""
        labels = labelled(self._request.observation.controls)
        fit = choices({label: control for label, control in labels.items() if fits(tool, control)})
        if self._control == _TEXT or not fit or len(fit) == len(labels):
            return self._control
        choice = {"type": "string", "enum": fit}
        definition = next((key for key, listed_choice in self.controls.items() if listed_choice == choice), None)
        if definition is None and len(fit) > self._remaining_values:
            return self._control
        if definition is None:
            definition = f"Control{len(self.controls) + 1}"
            self.controls[definition] = choice
            self._remaining_values -= len(fit)
        return {"$ref": f"#/$defs/{definition}"}

    def _arguments(self, tool: ToolInfo) -> Schema:
        """Build the strict form of a tool's parameters, else a free form."""
        try:
            form = self._form(tool)
        except (LooseError, AttributeError, TypeError):
            return FREE
        if values(form) > self._remaining_values:
            return plain(form)
        self._remaining_values -= values(form)
        return form

    def _form(self, tool: ToolInfo) -> Schema:
        """Build the strict form; a required list may be a reference.

        Raises:
            LooseError: If the schema has no strict form.
        """
        root = tool.schema
        required, parameters = root.get("required", ()), own_parameters(tool)
        if (
            root.get("additionalProperties")
            or root.get("patternProperties")
            or not {*required} <= {*parameters, *CONTROL}
        ):
            raise LooseError
        properties = {
            name: or_one_of(strict(part, root), fitting(self._parts, part, root) if name in required else [])
            for name, part in parameters.items()
        }
        if self._all_required:
            return object_of({name: part if name in required else or_null(part) for name, part in properties.items()})
        return {**object_of(properties), "required": [name for name in properties if name in required]}


def _typed(schema: Schema) -> Schema:
    """Build the strict form of a task's output, else a free form."""
    try:
        form = strict(schema, schema)
    except (LooseError, AttributeError, TypeError):
        return ANY
    return form if values(form) <= MOST_VALUES else plain(form)


def fits(tool: ToolInfo, control: Control) -> bool:
    """Return whether a tool acts on a control of this kind."""
    return not tool.controls or control.kind in tool.controls
