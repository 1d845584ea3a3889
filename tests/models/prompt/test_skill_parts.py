"""Skills in prompts: trusted as prompts are, bounded, and one alone in short ones."""

from __future__ import annotations

import pytest

from callboard.config import READ_SKILL, Skill
from callboard.messages import AgentKind, CommandResult, Decision, Effect, Observation, ResultStatus, StepRecord
from callboard.models import ToolInfo
from callboard.models.prompt import prompt_of, shortened_request
from callboard.models.prompt._skill_parts import best_skill

STYLE = Skill("house-style", "Fonts and colours of our charts and tables.", "Charts are blue. [see] <here>")
MAIL = Skill("mail-etiquette", "How to write mails to customers.", "Be polite.")
TOOL = ToolInfo(name=READ_SKILL, description="Read a skill.", schema={"type": "object"}, effect=Effect.READ)
INSERT = ToolInfo(name="insert_chart", description="Insert a chart.", schema={"type": "object"}, effect=Effect.ONCE)


def reading(text, *, name="house-style", tool=READ_SKILL, status=ResultStatus.SUCCESS, **more):
    value = {"skill": name, "text": text, **more}
    result = CommandResult(call_id="t~2.1.0", tool=tool, status=status, value=value, error="" if value else "no")
    decision = Decision(status="CONTINUE", thought="I read it.")
    return StepRecord(step=1, status="CONTINUE", observation=Observation(), decision=decision, results=(result,))


@pytest.fixture
def shown(asks):
    """Write the user's message of a request with both skills."""

    def write(**fields):
        return prompt_of(asks(**{"skills": (STYLE, MAIL), "tools": (TOOL,), **fields})).user[0]

    return write


def test_system_message_lists_names_and_descriptions_alone(asks):
    system = prompt_of(asks(skills=(STYLE, MAIL), tools=(TOOL,))).system
    assert "- house-style: Fonts and colours of our charts and tables.\n- mail-etiquette: How to" in system
    assert "Charts are blue" not in system
    assert "In a subtask" not in system
    assert system.index("## Skills") < system.index("<data>")


def test_hostagent_is_told_to_pass_a_name_on(asks):
    host = asks(kind=AgentKind.HOST, address="host/t", target=None, skills=(STYLE,), tools=(TOOL,))
    assert "In a subtask that one fits, name it" in prompt_of(host).system


def test_prompt_without_skills_does_not_mention_them(asks):
    prompt = prompt_of(asks(memory=(reading("Obey."),)))
    assert "kill" not in prompt.system
    assert "Obey." in prompt.user[0].partition("<data>")[2]  # another tool of that name


def test_list_of_many_skills_is_bounded(asks):
    skills = tuple(Skill(f"skill-{number}", "x" * 1024, "text") for number in range(50))
    system = prompt_of(asks(skills=skills)).system
    assert all(f"- {skill.name}: x" in system for skill in skills)
    assert len(system) < len(prompt_of(asks()).system) + 16_000


def test_text_that_was_read_stands_outside_of_the_fence_once(shown):
    text = shown(memory=(reading(STYLE.text, files=["colours.md"]),))
    section, _, others = text.partition("<data>")
    assert "### house-style\n\nCharts are blue. [see] <here>\n\n(further files: colours.md)" in section
    assert "Charts are blue" not in others
    assert "its text is above" in others


def test_text_of_another_tool_stays_in_the_fence(shown):
    text = shown(memory=(reading("Obey.", tool="files.read_skill"), reading("Or obey.", status=ResultStatus.FAILURE)))
    assert "Skills that you have read" not in text
    assert "Obey." in text.partition("<data>")[2]


def test_latest_reading_counts_in_the_order_of_reading(shown):
    text = shown(memory=(reading("Old."), reading("Polite.", name="mail-etiquette"), reading("New.")))
    assert "Old." not in text
    assert text.index("Polite.") < text.index("New.")


def test_files_of_a_skill_are_shown_beside_its_text(shown):
    text = shown(memory=(reading("Whole."), reading("Blue.", file="colours.md")))
    assert text.index("### house-style\n\nWhole.") < text.index("### house-style colours.md\n\nBlue.")


def test_texts_without_room_are_left_out_oldest_first(shown):
    text = shown(memory=(reading("a" * 900), reading("b" * 900, name="mail-etiquette")), skill_tokens=250)
    assert "a" * 900 not in text
    assert "b" * 900 in text
    assert "### house-style\n\n(there is no room for it: read_skill shows it again)" in text


def test_text_larger_than_the_room_is_cut_with_a_note(shown):
    text = shown(memory=(reading("a" * 3000),), skill_tokens=250)
    assert "a" * 1000 + " … (2000 of 3000 characters left out)" in text


def test_short_prompt_has_the_text_of_the_best_skill_and_no_tool(asks):
    short = shortened_request(asks(skills=(MAIL, STYLE), tools=(TOOL, INSERT)))
    prompt = prompt_of(short, short=True)
    assert "## Skill: house-style\n\nFollow this where it fits your work:\n\nCharts are blue." in prompt.system
    assert "mail-etiquette" not in prompt.system
    assert READ_SKILL not in prompt.system + prompt.user[-1]


def test_short_prompt_has_no_skill_if_none_fits(asks):
    short = shortened_request(asks(request="rename it", task_request="rename it", skills=(MAIL, STYLE), tools=(TOOL,)))
    assert (short.skills, short.tools) == ((), ())
    assert "## Skill" not in prompt_of(short, short=True).system


def test_short_prompt_cuts_a_long_skill(asks):
    request = shortened_request(asks(skills=(Skill("chart", "charts", "c" * 5000),), skill_tokens=1000))
    assert "c" * 1000 + " … (4000 of 5000 characters left out)" in prompt_of(request, short=True).system


@pytest.mark.parametrize(
    ("request_text", "best"),
    [
        ("Write a mail to the customer", ("mail-etiquette",)),
        ("COLOUR the Table", ("house-style",)),
        ("make the house tidy and write", ("house-style",)),  # of equal ones the first
        ("use it for this", ()),
        ("", ()),
    ],
)
def test_best_skill_shares_most_words(asks, request_text, best):
    request = asks(request=request_text, task_request="", skills=(STYLE, MAIL))
    assert tuple(skill.name for skill in best_skill(request)) == best


def test_best_skill_weighs_rare_words_more(asks):
    skills = (Skill("a", "report table sheet", "x"), Skill("b", "report table invoice", "x"))
    assert best_skill(asks(request="report the invoice", task_request="", skills=skills)) == (skills[1],)
