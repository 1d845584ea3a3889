"""Shorten requests for small models, and make examples of their tools."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from callboard.config import READ_SKILL
from callboard.messages import ESSENTIAL, AgentStatus, Effect
from callboard.models._examples import Example
from callboard.models._references import References, fitting
from callboard.models.prompt._answer_schema import (
    CONTROL,
    fits,
    needs_control,
    offered_tools,
    own_parameters,
    own_steps,
    takes_control,
)
from callboard.models.prompt._fence import cut, tamed
from callboard.models.prompt._labels import labelled
from callboard.models.prompt._skill_parts import best_skill
from callboard.models.prompt._strict import resolved
from callboard.models.prompt._tool_docs import either, lowered, makers_for, makes, singular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pydantic import JsonValue

    from callboard.messages import Observation
    from callboard.models._model import ModelRequest, ToolInfo


_ALTERNATIVES = frozenset({"allOf", "anyOf", "oneOf", "dependentRequired"})
"""Keywords by which a schema can require parameters outside of ``required``."""
_MOST_EXAMPLES = 2
"""Maximum number of tools with an example."""
_DEEPEST = 4
_COMPOUND = 4
"""Minimum number of letters of a noun that is found at the end of a word."""
_ALIKE = (
    "add append create draw insert make new put",
    "change correct edit enter fill put replace set update write",
    "delete drop erase remove",
    "arrange order sort",
    "average count formula mean sum total",
    "format show",
    "find get list look read show tell",
)
"""Words that mean the same in the names of tools and in subtasks."""
_CHANGES = frozenset(_ALIKE[:4])
"""Those that always ask for a change."""
_EMPTY = re.compile(
    r"(?:a(?:ll|nd|re)|each|every|for|from|ha[sd]|have|how|into|its|now|one|th(?:at|e|em|ere|ese|is)|w(?:as|ith)|wh.+)$"
)
"""Words that say nothing about a tool."""
NEGATION = re.compile(r"\b(?:no|not|never|nothing|without)\b|n[’']t\b", re.IGNORECASE)  # noqa: RUF001 - as written
"""A negation, which may concern any word beside it."""
_NOT_ADDED = "".join(rf"(?<!\b{verb} )" for verb in ("add", "append", "create", "draw", "insert")) + r"\b"
_NOUN = re.compile(r"(?:An?|Its|One|The)\b")
_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDINGS = re.compile(r"(?:ings?|ed|es|s|e)$")
_VERBS = [(verbs, {_ENDINGS.sub("", verb) for verb in verbs.split()}) for verbs in _ALIKE]
_LITERAL = frozenset(stem for _, stems in _VERBS for stem in stems)


def shortened_request(request: ModelRequest) -> ModelRequest:
    """Drop optional parts of a request.

    They are optional parameters, the task's request, the agent's earlier thoughts and plans, and all skills but the one
    that fits best, whose text the prompt has.
    """
    said = {"observation": "", "thought": "", "comment": "", "plan": ()}
    return dataclasses.replace(
        request,
        task_request="",
        plan=(),
        memory=tuple(
            record.model_copy(update={"decision": record.decision.model_copy(update=said)}) for record in request.memory
        ),
        tools=tuple(_needed(tool, _errors(tool, request)) for tool in request.tools if not _reads_skill(tool, request)),
        skills=best_skill(request),
    )


def _reads_skill(tool: ToolInfo, request: ModelRequest) -> bool:
    return bool(request.skills) and tool.name == READ_SKILL


def _errors(tool: ToolInfo, request: ModelRequest) -> str:
    """Return the errors of a tool's calls so far."""
    results = (result for record in own_steps(request) for result in record.results)
    return " ".join(str(result.error) for result in results if result.tool == tool.name and result.error)


def _needed(tool: ToolInfo, errors: str) -> ToolInfo:
    """Keep a tool's control, necessary parameters, and those named in errors.

    Those that tell where to act come first. All are kept if the necessary ones are unknown, and those of a tool that
    changes what its optional parameters say.
    """
    needed = [name for name, part in own_parameters(tool).items() if _is_needed(tool, name, part)]
    missing_names = [name for name in own_parameters(tool) if re.search(rf"\b{re.escape(name)}\b", errors)]
    required = tool.schema.get("required", ())
    shown_names = own_parameters(tool) if _is_open(tool) else dict.fromkeys([*needed, *missing_names])
    properties = {name: own_parameters(tool)[name] for name in sorted(shown_names, key=lambda name: name in required)}
    if not properties or tool.schema.keys() & _ALTERNATIVES:
        return tool
    control = {
        name: part for name, part in tool.schema["properties"].items() if takes_control(tool) and name in CONTROL
    }
    more = {"required": [*required, *(name for name in needed if name not in required)]}
    sets = more if tool.effect is Effect.IDEMPOTENT else {}  # it replaces what is there, so it has to say where
    return dataclasses.replace(tool, schema={**tool.schema, "properties": properties | control, **sets})


def _is_open(tool: ToolInfo) -> bool:
    """Return whether a tool does only what its optional parameters say."""
    required, parameters = tool.schema.get("required", ()), own_parameters(tool)
    tells_where = (
        isinstance(parameters[name], dict) and parameters[name].get(ESSENTIAL)
        for name in required
        if name in parameters
    )
    return tool.effect is not Effect.READ and all(tells_where)


def _is_needed(tool: ToolInfo, name: str, part: object) -> bool:
    return name in tool.schema.get("required", ()) or (isinstance(part, dict) and bool(part.get(ESSENTIAL)))


def tool_examples(request: ModelRequest) -> Iterator[Example]:
    """Yield examples of calls that a subtask may mean, and of FINISH.

    Their values are placeholders in angle brackets, because small models copy examples word for word.
    """
    asks = f"The subtask asks for: {tamed(cut(' '.join(request.request.split()), 150)).rstrip('.?!')}."
    if asks_question(request):
        yield _end(asks, "What you read in your steps answers the question", "<the answer, in words>")
    else:
        if not asks_change(request) and any(tool.effect is Effect.READ for tool in request.tools):
            yield _end(asks, "Your step 1 read all that the subtask asks to read", "${steps.1.results.0.value}")
        yield _end(asks, "Your steps did all that the subtask asks for", None)
    parts = References((), request.subtasks).parts()
    later = postponed(request)
    for tool in reversed(likely_tools(request) or _two_tools(request)):  # the last one counts most
        does, next_calls = f"{tool.name} does", []
        if later is not None:
            does, next_calls = f"{later.name}, after {tool.name}, does", [f"Call {later.name}"]
        call = {"Function": tool.name}
        control = _control(tool, _first(request)) if takes_control(tool) else ""
        if control:
            call["ControlText"] = control
        yield Example(
            f"{does} what the subtask asks for, and was not called:",
            {
                "Observation": "Nothing was done so far.",
                "Thought": f"{asks} {does} it.",
                "Decision": {
                    "Plan": [f"Call {tool.name}", *next_calls],
                    "Status": AgentStatus.CONTINUE.value,
                    "Actions": [{**call, "Args": _arguments(tool, request, parts)}],
                },
                "Comment": f"I call {tool.name}.",
            },
        )


def asks_question(request: ModelRequest) -> bool:
    """Return whether a subtask ends with a question mark."""
    return request.request.rstrip().endswith(("?", "\uff1f"))


def existing_things(request: ModelRequest, things: Collection[str]) -> set[str]:
    """Return the things that a subtask takes for given.

    It calls them "the", does not add them, and something like them is seen. After earlier subtasks there are none:
    their data may be called so.
    """
    text, controls = request.request.casefold(), _first(request).controls
    kinds = {_ENDINGS.sub("", control.kind.casefold()) for control in controls}
    filled = any(_columns(control.detail) for control in controls)
    present_things = {thing for thing in things if filled or _ENDINGS.sub("", thing) in kinds}
    if request.subtasks:
        return set()
    return {thing for thing in present_things if re.search(rf"{_NOT_ADDED}the {thing}", text)}


def asks_change(request: ModelRequest) -> bool:
    """Return whether a subtask asks for a change, without a negation."""
    text = request.request
    return not (asks_question(request) or NEGATION.search(text)) and bool(_stems(text) & _CHANGES)


def _end(asks: str, when: str, result: str | None) -> Example:
    return Example(
        f"{when}:",
        {
            "Observation": "Done so far: <which tools>.",
            "Thought": f"{asks} Nothing is missing.",
            "Decision": {"Plan": [], "Status": AgentStatus.FINISH.value, "Result": result},
            "Comment": "It is done.",
        },
    )


def _control(tool: ToolInfo, observation: Observation) -> str:
    """Name the only fitting control, else a placeholder for a necessary one."""
    fit = [label for label, control in labelled(observation.controls).items() if fits(tool, control)]
    if len(fit) == 1 and tool.controls:
        return fit[0]
    return f"<the {either(tool.controls or ('control',))}, as it is listed>" if needs_control(tool) else ""


def likely_tools(request: ModelRequest) -> list[ToolInfo]:
    """Rank the callable tools by the words shared with the subtask.

    The words are those of names and descriptions. A word counts the more, the fewer tools have it, and once more in a
    name; verbs count by their groups there. A tool gains if it acts on a kind of control that the subtask names. It
    loses if it acts on others, makes a thing that the subtask does not name or calls "the", or has a word in its name
    that is neither in the subtask nor a kind of control that is seen. A question gets one tool that reads, a change
    none. In place of a postponed tool, those are returned that make what it lacks, and take most of the data at hand.
    """
    later = postponed(request)
    if later is not None:
        return _first_makers(later, request)
    tools = _offered_first(request)
    text = lowered(request.request)
    said = text.partition(": ")[0]  # a text to write says nothing about a tool
    text = said if _stems(said) & {*_ALIKE} else text
    text_stems = _stems(text)
    names = {tool.name: _stems(tool.name.replace("_", " ")) - _LITERAL for tool in tools}
    text_stems -= _names_of_rows(text, _first(request))
    nouns = {noun for stems in names.values() for noun in stems if len(noun) >= _COMPOUND}
    text_stems |= {noun for noun in nouns if any(word.endswith(noun) for word in text_stems)}  # sheet in worksheet
    words = {tool.name: _stems(_named(tool)) | (_stems(_described(tool)) - {*_ALIKE}) for tool in tools}
    present_kinds = {_ENDINGS.sub("", control.kind.casefold()) for control in _first(request).controls}
    telling = {tool.name: names[tool.name] - (present_kinds if not makes(tool.name) else set()) for tool in tools}
    scores = dict.fromkeys(words, 0.0)
    for stems_by_tool in (words, telling):
        often = Counter(stem for stems in stems_by_tool.values() for stem in stems)
        for name, stems in stems_by_tool.items():
            scores[name] += sum(math.log(1 + len(stems_by_tool) / often[stem]) for stem in text_stems & stems)
    for tool in tools:
        kinds = {_ENDINGS.sub("", kind) for kind in tool.controls}
        acts = 0 if not kinds or not text_stems & present_kinds else 1 if kinds & text_stems else -1
        objects = {_ENDINGS.sub("", thing) for thing in makes(tool.name)}
        there = existing_things(request, objects)
        strange = len(names[tool.name] - text_stems - present_kinds) + 3 * len(objects - text_stems) + 5 * len(there)
        scores[tool.name] += bool(text_stems & _stems(tool.name.partition("_")[0]) & _LITERAL)
        scores[tool.name] *= 1 + acts / 2 - min(strange, 6) / 8
    ranked = sorted(tools, key=lambda tool: (-scores[tool.name], tool.name))
    if asks_question(request):
        return [tool for tool in ranked if tool.effect is Effect.READ][:1]
    ranked = [tool for tool in ranked if tool.effect is not Effect.READ] if asks_change(request) else ranked
    best = max((scores[tool.name] for tool in ranked), default=0.0)
    return [tool for tool in ranked if 0 < best * 2 / 3 <= scores[tool.name]][:_MOST_EXAMPLES]


def _names_of_rows(text: str, observation: Observation) -> set[str]:
    """Return the headers' stems that only name a row: "order P-9"."""
    headers = {word for control in observation.controls for name in _columns(control.detail) for word in _stems(name)}
    words = _WORD.findall(text)
    followed = {word for word in words if re.search(rf"\b{re.escape(word)}\s+(?=\S*\d)", text)}
    alone = {word for word in words if re.search(rf"\b{re.escape(word)}\b(?!\s+\S*\d)", text)}
    return headers & (_stems(" ".join(followed)) - _stems(" ".join(alone)))


def postponed(request: ModelRequest) -> ToolInfo | None:
    """Return the tool that a subtask wants, if others come first.

    It makes what the subtask asks for, but lacks a control, which others make. None if there are several such tools.
    """
    if not asks_change(request):
        return None
    words = {singular(word) for word in _WORD.findall(lowered(request.request))}
    wanted_tools = [tool for tool in request.tools if tool.effect is not Effect.READ and makes(tool.name) & words]
    offered = _offered_first(request)
    candidates = [tool for tool in wanted_tools if tool not in offered and makers_for(tool, offered)]
    return candidates[0] if len(candidates) == 1 else None


def _first_makers(later: ToolInfo, request: ModelRequest) -> list[ToolInfo]:
    """Return the makers of a missing control that take most data."""
    parts = References((), request.subtasks).parts()
    counted_makers = [
        (sum(bool(fitting(parts, part, maker.schema)) for part in own_parameters(maker).values()), maker)
        for maker in makers_for(later, _offered_first(request))
    ]
    most = max(count for count, _ in counted_makers)
    return [maker for count, maker in counted_makers if count == most][:_MOST_EXAMPLES]


def _offered_first(request: ModelRequest) -> tuple[ToolInfo, ...]:
    return offered_tools(dataclasses.replace(request, observation=_first(request)))


def _two_tools(request: ModelRequest) -> list[ToolInfo]:
    """Return a tool that reads and one that changes something."""
    reads = [tool for tool in request.tools if tool.effect is Effect.READ]
    return [*reads[:1], *[tool for tool in request.tools if tool not in reads][:1]]


def _first(request: ModelRequest) -> Observation:
    """Return the subtask's first observation, so that examples stay the same."""
    return next((record.observation for record in own_steps(request)), request.observation)


def _named(tool: ToolInfo) -> str:
    return f"{tool.name.replace('_', ' ')} {tool.description}"


def _described(tool: ToolInfo) -> str:
    return " ".join(_about(name, part) for name, part in own_parameters(tool).items())


def _about(name: str, part: object) -> str:
    about = part.get("description", "") if isinstance(part, dict) else ""
    return f"{name.replace('_', ' ')} {about}"


def _stems(text: str) -> set[str]:
    """Return the words without endings, and the groups of their verbs."""
    word_stems = {_ENDINGS.sub("", word) for word in _WORD.findall(text.casefold()) if not _EMPTY.match(word)}
    return word_stems | {verbs for verbs, stems in _VERBS if word_stems & stems}


def _arguments(tool: ToolInfo, request: ModelRequest, parts: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Make the arguments that are required or named by the subtask."""
    parameters = own_parameters(tool)
    subtask_stems = _stems(request.request) - _stems(tool.name.replace("_", " ")) - {*_ALIKE}
    named = [name for name, part in parameters.items() if subtask_stems & _stems(_about(name, part))]
    optional = [name for name in parameters if _is_open(tool) and not _is_needed(tool, name, parameters[name])]
    chosen = {*tool.schema.get("required", ()), *([name for name in optional if name in named] or optional[:1])}
    chosen |= {name for name in named if _is_needed(tool, name, parameters[name])}
    return {name: _argument(name, tool, request, parts) for name in parameters if name in chosen}


def _argument(name: str, tool: ToolInfo, request: ModelRequest, parts: Mapping[str, JsonValue]) -> Any:
    """Make an argument: known data, a row, or a placeholder.

    Data is what can be passed on, or all cells of the only fitting control.
    """
    part = own_parameters(tool)[name]
    passed = next(iter(fitting(parts, part, tool.schema)), None)
    fit = [control for control in _first(request).controls if fits(tool, control) and name in control.detail]
    if passed is None and isinstance(part, dict) and part.get(ESSENTIAL) and len(fit) == 1:
        return fit[0].detail[name]
    return passed or _line(tool, request, part) or _placeholder(name, part, tool.schema)


def _line(tool: ToolInfo, request: ModelRequest, part: Any) -> list[list[str]]:
    """Make a row like those of the only control with rows.

    There is none for a tool that sets cells: it need not set a whole row.
    """
    lists = isinstance(part, dict) and isinstance(part.get("items"), dict) and part["items"].get("type") == "array"
    column_lists = [line for control in _first(request).controls if (line := _columns(control.detail))]
    return column_lists if lists and tool.effect is not Effect.IDEMPOTENT and len(column_lists) == 1 else []


def _columns(detail: Mapping[str, Any]) -> list[str]:
    """Return a placeholder for each column of a control."""
    header, rows = detail.get("header"), detail.get("first_rows")
    if isinstance(header, dict) and header:
        return [f"<{name}>" for name in header.values()]
    first = next(iter(rows.values()), None) if isinstance(rows, dict) else None
    return [f"<value {number}>" for number, _ in enumerate(first, 1)] if isinstance(first, list) else []


def _placeholder(name: str, part: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """Make a value that describes a parameter, in the parameter's form."""
    if not isinstance(part, dict) or depth > _DEEPEST:
        return f"<{name}>"
    options = part.get("anyOf") or part.get("oneOf")
    if options or "$ref" in part:
        inner = options[0] if options else resolved(part, root)
        return _placeholder(name, inner, root, depth + 1)
    choices = part.get("enum") or (["true", "false"] if part.get("type") == "boolean" else None)
    if part.get("type") == "array":
        return [_placeholder(name, part.get("items"), root, depth + 1)]
    if isinstance(part.get("properties"), dict):
        return {key: _placeholder(key, member, root, depth + 1) for key, member in part["properties"].items()}
    about = re.split("[.;,]| like ", str(part.get("description", "")))[0]  # a value to copy is no placeholder
    description = cut(about, 60) if _NOUN.match(about) else name
    return f"<{either([*map(str, choices)]) if choices else description}>"


def copied(request: ModelRequest, arguments: object) -> list[str]:
    """Return the texts in arguments that are placeholders of the examples."""
    marked = {text for text in _texts(arguments) if text.startswith("<") and text.endswith(">")}
    if not marked:
        return []
    examples = (example.answer["Decision"].get("Actions", []) for example in tool_examples(request))
    return sorted(marked.intersection(text for actions in examples for text in _texts(actions)))


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for member in value:
                yield from _texts(member)
        case dict():
            for member in value.values():
                yield from _texts(member)
