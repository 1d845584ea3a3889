"""Going on with a step that a crash broke off: look first, then do the rest, and nothing twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callboard import tool
from callboard.actors.states import Unfinished, evolve
from callboard.messages import (
    Action,
    ActionFacts,
    AgentKind,
    Answered,
    CommandResult,
    Decided,
    Decision,
    Effect,
    EventName,
    Foreseen,
    Held,
    Intent,
    Observation,
    Outcome,
    PlannedSubtask,
    PlanStep,
    Probe,
    Question,
    ResultStatus,
    StepDone,
    StepFailure,
    Target,
    TargetKind,
)
from callboard.testing import MemoryServer

WINDOW = MemoryServer.window()
TEXTS = ("a", "b", "c")


class Looked(MemoryServer):
    """A window for which a test sets a look's verdict on an action."""

    settles = False
    says = Probe.UNKNOWN
    left = Probe.UNKNOWN
    """The finding of a look at an action that has its result."""

    def __init__(self, *targets, **more):
        super().__init__(*targets, **more)
        self.probed = []

    def probe(self, target, intent, foreseen, fingerprint):
        if intent.call_id == RAN.call_id:
            return self.left
        self.probed.append((intent, tuple(foreseen), fingerprint))
        return self.says

    def is_changed(self):
        self._controls["memo:one"]["field-1"] = "somebody else was here"

    @tool(effect=Effect.ONCE)
    def explode(self, target: str) -> str:
        """Fail, always."""
        msg = "out of paper"
        raise OSError(msg)

    @property
    def texts(self):
        return [text for _, _, text in self.effects]


APPLICATION = Target(
    id="memo", name="Memo", kind=TargetKind.APPLICATION, address="app/memo/*", server="memory", start="launch"
)


class Launcher(Looked):
    """An application that can be started."""

    def targets(self):
        return (APPLICATION,)

    @tool(effect=Effect.ONCE, agents=(AgentKind.HOST,), offered=False)
    def launch(self, name: str) -> Target:
        """Start it."""
        self.effects.append(("", "", name))
        return WINDOW


def action(text="", name="append"):
    return Action(tool=name, arguments={"control_id": "field-1", "text": text} if text else {})


def decided(here, *actions, approved="", resumed=False, status="CONTINUE"):
    actions = tuple(each.model_copy(update={"call_id": f"t~1.1.{place}"}) for place, each in enumerate(actions))
    return Decided(
        step=1,
        observation=here.surface.observe(WINDOW),
        decision=Decision(status=status, actions=actions),
        actions=actions,
        approved=approved,
        resumed=resumed,
    )


def intent(number=0, text="a"):
    return Intent(
        call_id=f"t~1.1.{number}",
        tool="append",
        arguments={"control_id": "field-1", "text": text},
        target=WINDOW,
        fingerprint="before",
    )


RAN = Intent(call_id="t~1.0.9", tool="append", expected="as it left it")


NOTE = Foreseen(call_id="t~1.1.0", path="/w/old.txt", before="1", after="2")


def done(number=0, status=ResultStatus.SUCCESS):
    error = "" if status is ResultStatus.SUCCESS else "no"
    return CommandResult(call_id=f"t~1.1.{number}", tool="append", status=status, error=error)


@pytest.fixture
def left(stage):
    """A stage on which a crash broke off a list of three; and its run."""

    def make(says=Probe.UNKNOWN, *, actions=None, settings=None, **unfinished):
        here = stage(surface=Looked, **(settings or {}))
        here.surface.says = says
        step = decided(here, *(actions or map(action, TEXTS)), **unfinished.pop("step", {}))
        return here, here.run(unfinished=Unfinished(decided=step, **unfinished))

    return make


def kept(here, kind):
    """The journaled messages of one kind, with the job that noted each."""
    found = []
    here.services.journal.read("t", found.extend)
    return [row.message for row in found if isinstance(row.message, kind)]


# Actions in doubt


async def test_finished_action_is_not_repeated_and_its_list_continues(left):
    here, run = left(Probe.DONE, intent=intent())
    returned = await here.pipeline.process_recovered(run)
    assert isinstance(returned, StepDone)
    assert here.surface.texts == ["b", "c"]
    assert [(result.call_id, result.status) for result in returned.record.results] == [
        ("t~1.1.0", ResultStatus.SUCCESS),
        ("t~1.1.1", ResultStatus.SUCCESS),
        ("t~1.1.2", ResultStatus.SUCCESS),
    ]


async def test_finished_action_is_recorded_so_that_the_next_crash_has_no_doubt(left):
    here, run = left(Probe.DONE, intent=intent())
    await here.pipeline.process_recovered(run)
    assert [result.call_id for result in kept(here, CommandResult)] == ["t~1.1.0", "t~1.1.1", "t~1.1.2"]
    assert [note.call_id for note in kept(here, Intent)] == ["t~1.1.1", "t~1.1.2"]


async def test_the_result_of_what_was_done_has_the_files_that_it_foresaw(left):
    foreseen = (
        Foreseen(call_id="t~1.1.0", path="/w/new.txt", before="", after="1"),
        Foreseen(call_id="t~1.1.0", path="/w/old.txt", before="1", after="2"),
    )
    here, run = left(Probe.DONE, actions=[action("a")], intent=intent(), foreseen=foreseen)
    returned = await here.pipeline.process_recovered(run)
    [result] = returned.record.results
    assert (result.artifacts, result.made) == (("/w/new.txt", "/w/old.txt"), ("/w/new.txt",))
    assert here.surface.probed[0][1] == foreseen


async def test_repeated_call_lists_the_files_that_it_made_before_the_crash(left):
    notes = [Foreseen(call_id="t~1.1.0", path=path, after="1") for path in ("/w/one.txt", "/w/two.txt", "/w/three.txt")]
    here, run = left(
        actions=[action("a"), action("b")], intent=intent(), foreseen=(*notes[1:], NOTE), earlier=(notes[0],)
    )
    here.surface.probe = lambda _target, _intent, foreseen, fingerprint: (
        Probe.DONE if [note.path for note in foreseen] in (["/w/one.txt"], ["/w/two.txt"]) else Probe.NOT_DONE
    )
    returned = await here.pipeline.process_recovered(run)
    assert [(result.artifacts, result.made) for result in returned.record.results] == [
        (("/w/one.txt", "/w/two.txt"), ("/w/one.txt", "/w/two.txt")),
        ((), ()),
    ]


async def test_call_that_is_not_repeated_lists_the_files_that_it_made(left):
    notes = tuple(Foreseen(call_id="t~1.1.0", path=path, after="1") for path in ("/w/one.txt", "/w/two.txt"))
    policy = {"policy": [{"verdict": "deny", "tool": "append"}]}
    here, run = left(actions=[action("a"), action("b")], settings=policy, intent=intent(), foreseen=notes)
    here.surface.probe = lambda _target, _intent, foreseen, fingerprint: (
        Probe.DONE if [note.path for note in foreseen] == ["/w/one.txt"] else Probe.NOT_DONE
    )
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == []
    assert [(result.status, result.made) for result in returned.record.results] == [
        (ResultStatus.FAILURE, ("/w/one.txt",)),
        (ResultStatus.SKIPPED, ()),
    ]


async def test_finished_repetition_lists_the_files_of_both_calls(left):
    earlier = (Foreseen(call_id="t~1.1.0", path="/w/one.txt", after="1"),)
    foreseen = (Foreseen(call_id="t~1.1.0", path="/w/two.txt", after="1"),)
    here, run = left(Probe.DONE, actions=[action("a")], intent=intent(), foreseen=foreseen, earlier=earlier)
    returned = await here.pipeline.process_recovered(run)
    assert [result.made for result in returned.record.results] == [("/w/one.txt", "/w/two.txt")]


async def test_finished_action_answers_as_its_surface_foresaw(left):
    foreseen = (Foreseen(call_id="t~1.1.0", path="/w/new.txt", after="1", answer={"rows": [1, 2]}),)
    here, run = left(Probe.DONE, actions=[action("a")], intent=intent(), foreseen=foreseen)
    returned = await here.pipeline.process_recovered(run)
    assert [result.value for result in returned.record.results] == [{"rows": [1, 2]}]


@pytest.mark.parametrize("foreseen", [(), (Foreseen(call_id="t~1.1.0", path="/w/new.txt", after="1"),)])
async def test_model_gets_a_note_when_a_finished_actions_answer_is_lost(left, foreseen):
    here, run = left(Probe.DONE, actions=[action("a")], intent=intent(), foreseen=foreseen)
    returned = await here.pipeline.process_recovered(run)
    assert "its answer is lost" in returned.record.results[0].value


@pytest.fixture
def left_start(stage):
    """A HostAgent's stage on which a crash broke off the start of an application, which was done; and its run."""

    def make(**foreseen):
        here = stage(surface=Launcher, target=None)
        here.surface.says = Probe.DONE
        start = Action(tool="launch", arguments={"name": "memo"}, call_id="t~0.1.0")
        seen = Observation(targets=here.surface.targets())
        decision = Decision(status="ASSIGN", target=APPLICATION, subtask="write", actions=(start,))
        step = Decided(step=1, observation=seen, decision=decision, actions=(start,))
        doubt = Intent(call_id="t~0.1.0", tool=start.tool, arguments=start.arguments)
        note = Foreseen(call_id=doubt.call_id, path="/w/new.txt", after="1", **foreseen)
        return here, here.run(unfinished=Unfinished(decided=step, intent=doubt, foreseen=(note,)))

    return make


async def test_the_window_that_a_start_foresaw_in_json_gets_the_subtask(left_start):
    here, run = left_start(answer=WINDOW.model_dump(mode="json"))
    returned = await here.pipeline.process_recovered(run)
    assert (returned.record.decision.status, returned.record.decision.target) == ("ASSIGN", WINDOW)
    assert here.surface.texts == []


async def test_windows_of_starts_before_and_in_a_crash_get_their_subtasks(stage):
    here = stage(surface=Launcher, target=None)
    here.surface.says = Probe.DONE
    starts = [Action(tool="launch", arguments={"name": "memo"}, call_id=f"t~0.1.{place}") for place in range(2)]
    first = MemoryServer.window("first")
    members = tuple(PlannedSubtask(request=name, target=APPLICATION) for name in ("a", "b"))
    decision = Decision(status="ASSIGN", group=members, actions=(*starts,))
    done = CommandResult(
        call_id="t~0.1.0", tool="launch", status=ResultStatus.SUCCESS, value=first.model_dump(mode="json")
    )
    unfinished = Unfinished(
        decided=Decided(
            step=1, observation=Observation(targets=here.surface.targets()), decision=decision, actions=(*starts,)
        ),
        results=(done,),
        intent=Intent(call_id="t~0.1.1", tool="launch", arguments={"name": "memo"}),
        foreseen=(Foreseen(call_id="t~0.1.1", path="/w/new.txt", after="1", answer=WINDOW.model_dump(mode="json")),),
    )
    returned = await here.pipeline.process_recovered(here.run(unfinished=unfinished))
    assert [planned.target for planned in returned.record.decision.group] == [first, WINDOW]
    assert here.surface.texts == []


async def test_where_the_answer_of_a_start_is_lost_nothing_is_assigned(left_start):
    here, run = left_start()
    returned = await here.pipeline.process_recovered(run)
    assert (returned.record.decision.status, returned.record.decision.target) == ("CONTINUE", None)


async def test_plan_whose_start_lost_its_answer_fails_and_starts_nothing_more(stage):
    here = stage(surface=Launcher, target=None)
    here.surface.says = Probe.DONE
    starts = [Action(tool="launch", arguments={"name": "memo"}, call_id=f"t~0.1.{place}") for place in range(2)]
    members = tuple(PlannedSubtask(request=name, target=APPLICATION) for name in ("a", "b"))
    decision = Decision(status="ASSIGN", group=members, actions=(*starts,))
    seen = Observation(targets=here.surface.targets())
    doubt = Intent(call_id="t~0.1.0", tool="launch", arguments={"name": "memo"})
    unfinished = Unfinished(
        decided=Decided(step=1, observation=seen, decision=decision, actions=(*starts,)), intent=doubt
    )
    alone = here.run(unfinished=unfinished)
    returned = await here.pipeline.process_recovered(alone)
    assert (returned.record.decision.status, returned.record.decision.group) == ("CONTINUE", ())
    assert here.surface.texts == []
    steps = tuple(PlanStep(request=name, target="memo", after=()) for name in ("a", "b"))
    follows = evolve(alone, assign=alone.assign.model_copy(update={"plan": steps}))
    returned = await here.pipeline.process_recovered(follows)
    assert (returned.record.decision.status, here.surface.texts) == ("FAIL", [])
    assert "its window is not known" in returned.record.decision.comment


@pytest.mark.parametrize("says", [Probe.NOT_DONE, Probe.BEGUN])
async def test_undone_or_begun_action_is_called_with_a_new_intent(left, says):
    here, run = left(says, intent=intent())
    returned = await here.pipeline.process_recovered(run)
    assert isinstance(returned, StepDone)
    assert here.surface.texts == ["a", "b", "c"]
    notes = kept(here, Intent)
    assert [note.call_id for note in notes] == ["t~1.1.0", "t~1.1.1", "t~1.1.2"]
    assert notes[0].fingerprint not in {"", "before"}


async def test_unclear_action_is_put_to_a_person_before_anything_is_done(left):
    here, run = left(Probe.UNKNOWN, intent=intent(), settings={"limits": {"question_seconds": 60}})
    asked = await here.pipeline.process_recovered(run)
    assert isinstance(asked, Question)
    assert (asked.in_doubt, asked.deadline, asked.limit) == ("t~1.1.0", 1060.0, None)
    [question] = asked.questions
    assert question.choices == ("it was done", "it was not done", "stop")
    assert "append(control_id='field-1', text='a')" in question.text
    assert here.surface.effects == []


async def test_an_unknown_outcome_of_a_repeatable_write_is_asked_of_a_person(left):
    here, run = left(Probe.UNKNOWN, actions=[action("a", "write")], foreseen=(NOTE,))
    asked = await here.pipeline.process_recovered(run)
    assert isinstance(asked, Question)
    assert asked.in_doubt == "t~1.1.0"
    assert "Was write(control_id='field-1', text='a') done?" in asked.questions[0].text
    assert here.surface.effects == []


@pytest.mark.parametrize("settings", [{"journal": {"in_doubt": "fail"}}, {"system": {"ask_question": False}}])
async def test_unclear_write_fails_the_work_when_no_person_may_be_asked(left, settings):
    here, run = left(Probe.UNKNOWN, actions=[action("a", "write")], foreseen=(NOTE,), settings=settings)
    failed = await here.pipeline.process_recovered(run)
    assert (type(failed), failed.outcome, here.surface.effects) == (StepFailure, Outcome.FAILED, [])
    assert "write may have been done before a crash, or not" in failed.causes[-1].reason


@pytest.mark.parametrize(("says", "texts"), [(Probe.DONE, ["b"]), (Probe.NOT_DONE, ["a", "b"])])
async def test_repeatable_action_that_was_about_to_write_is_probed(left, says, texts):
    here, run = left(says, actions=[action("a", "write"), action("b", "write")], foreseen=(NOTE,))
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == texts
    assert [result.status for result in returned.record.results] == [ResultStatus.SUCCESS] * 2


@pytest.mark.parametrize("settings", [{"journal": {"in_doubt": "fail"}}, {"system": {"ask_question": False}}])
async def test_unclear_action_fails_the_work_when_no_person_may_be_asked(left, settings):
    here, run = left(Probe.UNKNOWN, intent=intent(), settings=settings, results=())
    failed = await here.pipeline.process_recovered(run)
    assert (type(failed), failed.outcome) == (StepFailure, Outcome.FAILED)
    assert "append may have been done before a crash, or not" in failed.causes[-1].reason
    assert here.surface.effects == []


@pytest.mark.parametrize(("probe", "texts"), [(Probe.DONE, ["b", "c"]), (Probe.NOT_DONE, ["a", "b", "c"])])
async def test_answer_of_a_person_is_followed_without_a_probe(left, probe, texts):
    here, run = left(Probe.UNKNOWN, intent=intent(), probe=probe)
    assert isinstance(await here.pipeline.process_recovered(run), StepDone)
    assert (here.surface.texts, here.surface.probed) == (texts, [])


@pytest.mark.parametrize("says", Probe)
async def test_every_doubt_is_an_event(left, says):
    here, run = left(says, intent=intent())
    await here.pipeline.process_recovered(run)
    [event] = here.events(EventName.COMMAND_IN_DOUBT)
    assert event.data == {"tool": "append", "call": "t~1.1.0", "probe": says.value}


async def test_of_a_tool_that_is_gone_nothing_is_known(left):
    gone = intent().model_copy(update={"tool": "removed"})
    here, run = left(Probe.DONE, intent=gone)
    assert isinstance(await here.pipeline.process_recovered(run), Question)
    assert here.surface.probed == []


async def test_of_several_in_a_list_only_the_one_that_was_under_way_is_in_doubt(left):
    here, run = left(Probe.DONE, results=(done(0),), intent=intent(1, "b"))
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == ["c"]
    assert [result.call_id for result in returned.record.results] == ["t~1.1.0", "t~1.1.1", "t~1.1.2"]


# The rest of the step


async def test_without_a_doubt_what_has_no_result_is_run(left):
    here, run = left(results=(done(0),))
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == ["b", "c"]
    assert here.surface.probed == []
    assert len(returned.record.results) == 3


async def test_when_all_had_run_nothing_is_run_and_the_step_is_remembered(left):
    here, run = left(results=tuple(done(number) for number in range(3)))
    returned = await here.pipeline.process_recovered(run)
    assert (here.surface.effects, len(returned.record.results), returned.record.step) == ([], 3, 1)
    assert returned.record.observation == run.unfinished.decided.observation


async def test_after_an_action_that_failed_the_rest_is_skipped(left):
    here, run = left(results=(done(0, ResultStatus.FAILURE),))
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert [result.status for result in returned.record.results] == [
        ResultStatus.FAILURE,
        ResultStatus.SKIPPED,
        ResultStatus.SKIPPED,
    ]


async def test_a_failure_in_the_rest_stops_it(left):
    here, run = left(actions=[action("a"), action(name="explode"), action("c")], results=(done(0),))
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert [result.status for result in returned.record.results] == [
        ResultStatus.SUCCESS,
        ResultStatus.FAILURE,
        ResultStatus.SKIPPED,
    ]


async def test_a_pause_holds_what_is_left(left):
    here, run = left(results=(done(0),))
    here.lease.paused = True
    returned = await here.pipeline.process_recovered(run)
    assert (returned.held_by, [held.arguments["text"] for held in returned.held]) == (Held.PAUSE, ["b", "c"])
    assert here.surface.effects == []


async def test_the_policy_is_asked_about_what_is_left(left):
    policy = [{"verdict": "deny", "tool": "append", "reason": "read only"}]
    here, run = left(results=(done(0),), settings={"policy": policy})
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert returned.record.results[1].error == "denied: read only"


async def test_approval_from_before_the_crash_still_holds(left):
    policy = [{"verdict": "approve", "tool": "append"}]
    here, run = left(results=(done(0),), settings={"policy": policy}, step={"approved": "approved", "resumed": True})
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == ["b", "c"]
    assert returned.record.resumed


@pytest.mark.parametrize(("shown", "texts"), [((), []), (("unknown",), ["b", "c"])])
async def test_approval_from_before_the_crash_holds_for_what_was_shown(left, shown, texts):
    facts = ActionFacts(resources=shown)
    actions = [action(text).model_copy(update={"facts": facts}) for text in TEXTS]
    policy = [{"verdict": "approve", "resource": ["*"]}]
    step = {"approved": "approved", "resumed": True}
    here, run = left(actions=actions, results=(done(0),), settings={"policy": policy}, step=step)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == texts
    assert [held.facts.resources for held in returned.held] == [("unknown",)] * (2 - len(texts))
    assert returned.record.resumed


async def test_action_that_needs_an_approval_waits_for_it(left):
    here, run = left(results=(done(0),), settings={"policy": [{"verdict": "approve", "tool": "append"}]})
    returned = await here.pipeline.process_recovered(run)
    assert (returned.held_by, len(returned.held), here.surface.effects) == (Held.POLICY, 2, [])


@pytest.mark.parametrize(("resumed", "steps"), [(False, 1), (True, 0)])
async def test_an_interrupted_step_counts_as_one_and_a_resumed_one_as_none(left, resumed, steps):
    here, run = left(step={"resumed": resumed})
    returned = await here.pipeline.process_recovered(run)
    assert (returned.usage.steps, returned.usage.model_calls) == (steps, 0)


def change(here):
    """Write from outside, while no agent works."""
    here.surface.is_changed()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("append", "somebody else has changed it while nobody worked; nothing more was done"),
        (
            "write",
            "somebody else has changed it while nobody worked, unless write did it right before; nothing more was done",
        ),
    ],
)
async def test_a_surface_that_somebody_else_changed_meanwhile_gets_nothing(left, name, why):
    here, run = left(actions=[action(text, name) for text in TEXTS])
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert [result.status for result in returned.record.results] == [ResultStatus.SKIPPED] * 3
    assert why in returned.record.results[0].error
    assert [event.data["ran"] for event in here.events(EventName.LIST_CUT)] == [0]


async def test_an_action_after_a_read_does_not_overwrite_others_changes(left):
    read = Action(tool="read", arguments={"control_id": "field-1"})
    here, run = left(actions=[read, action("a", "write")])
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert [result.status for result in returned.record.results] == [ResultStatus.SKIPPED] * 2


async def test_read_is_run_although_another_program_wrote(left):
    here, run = left(actions=[Action(tool="read", arguments={"control_id": "field-1"})])
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert [result.value for result in returned.record.results] == ["somebody else was here"]


async def test_a_surface_that_may_change_by_itself_is_gone_on_with(left):
    here, run = left(actions=[action("a", "write")])
    here.surface.settles = True
    change(here)
    assert isinstance(await here.pipeline.process_recovered(run), StepDone)
    assert here.surface.texts == ["a"]


@pytest.mark.parametrize("name", ["append", "write"])
@pytest.mark.parametrize(("looks", "texts"), [(Probe.DONE, ["b", "c"]), (Probe.UNKNOWN, []), (Probe.NOT_DONE, [])])
async def test_the_rest_of_a_list_runs_if_the_surface_is_as_the_list_left_it(left, name, looks, texts):
    here, run = left(actions=[action(text, name) for text in TEXTS], results=(done(0),), known=RAN)
    here.surface.left = looks
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.texts == texts
    assert len(returned.record.results) == 3


async def test_the_rest_of_a_list_is_skipped_if_the_surface_it_left_is_unknown(left):
    here, run = left(actions=[action(text, "write") for text in TEXTS], results=(done(0),))
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert [result.status for result in returned.record.results[1:]] == [ResultStatus.SKIPPED] * 2


async def test_a_list_resumes_on_a_surface_as_it_was_before_the_undone_action(left):
    here, run = left(Probe.NOT_DONE, results=(done(0),), intent=intent(1, "b"))
    change(here)
    before = here.surface.observe(WINDOW).fingerprint
    still = run.unfinished.intent.model_copy(update={"fingerprint": before})
    run = here.run(unfinished=replace(run.unfinished, intent=still))
    await here.pipeline.process_recovered(run)
    assert here.surface.texts == ["b", "c"]


async def test_list_stops_on_a_changed_surface_after_a_person_answers_done(left):
    actions = [action(text, "write") for text in TEXTS]
    here, run = left(Probe.UNKNOWN, actions=actions, foreseen=(NOTE,), probe=Probe.DONE)
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    statuses = [result.status for result in returned.record.results]
    assert statuses == [ResultStatus.SUCCESS, ResultStatus.SKIPPED, ResultStatus.SKIPPED]


async def test_list_is_skipped_on_a_changed_surface_after_a_not_done_answer(left):
    actions = [action(text, "write") for text in TEXTS]
    here, run = left(Probe.UNKNOWN, actions=actions, foreseen=(NOTE,), probe=Probe.NOT_DONE)
    change(here)
    returned = await here.pipeline.process_recovered(run)
    assert here.surface.effects == []
    assert [result.status for result in returned.record.results] == [ResultStatus.SKIPPED] * 3


async def test_the_surface_is_looked_at_before_anything_is_probed_or_done(left):
    here, run = left(Probe.DONE, intent=intent())
    before = here.surface.observe(WINDOW).fingerprint
    await here.pipeline.process_recovered(run)
    [(probed, _, fingerprint)] = here.surface.probed
    assert (probed, fingerprint) == (run.unfinished.intent, before)


async def test_unreadable_surface_fails_the_step_before_anything_is_done(left):
    here, run = left(Probe.NOT_DONE, intent=intent())
    here.surface.remove("memo:one")
    failed = await here.pipeline.process_recovered(run)
    assert (type(failed), here.surface.effects) == (StepFailure, [])


async def test_the_model_is_not_asked_again(stage):
    here = stage(lambda _request: pytest.fail("asked again"), surface=Looked)
    here.surface.says = Probe.DONE
    step = decided(here, action("a"), action("b"))
    run = here.run(unfinished=Unfinished(decided=step, intent=intent()))
    returned = await here.pipeline.process_recovered(run)
    assert (returned.record.decision, returned.record.observation) == (step.decision, step.observation)


async def test_a_run_that_no_crash_broke_off_can_not_be_gone_on_with(stage):
    here = stage(surface=Looked)
    failed = await here.pipeline.process_recovered(here.run())
    assert (type(failed), failed.causes[-1].exception) == (StepFailure, "LookupError")


# Usage and actions from before the crash, whatever becomes of the rest

PAID = tuple(
    Answered(step=1, call=call, content={"Status": "CONTINUE"}, input_tokens=10, output_tokens=5, cost=0.25)
    for call in (1, 2)
)


def booked(here):
    """The task's amounts in the budgets."""
    return here.services.budgets.task("t").used


async def test_continued_step_counts_its_earlier_usage(left):
    here, run = left(Probe.DONE, intent=intent(1), results=(done(0),), answers=PAID)
    returned = await here.pipeline.process_recovered(run)
    used = returned.usage
    assert (used.steps, used.model_calls, used.repairs, used.commands) == (1, 2, 1, 3)
    assert (used.input_tokens, used.output_tokens, used.cost) == (20, 10, 0.5)
    assert booked(here) == {"steps": 1, "model_calls": 2, "tokens": 30, "cost": 0.5}


async def test_usage_and_results_survive_when_the_surface_is_unreadable(left):
    here, run = left(Probe.DONE, intent=intent(1), foreseen=(NOTE,), results=(done(0),), answers=PAID)
    here.surface.remove("memo:one")
    here.surface.observe = broken
    failed = await here.pipeline.process_recovered(run)
    assert (type(failed), failed.outcome) == (StepFailure, Outcome.ERROR)
    assert [(result.call_id, result.status, result.in_doubt) for result in failed.results] == [
        ("t~1.1.0", ResultStatus.SUCCESS, False),
        ("t~1.1.1", ResultStatus.FAILURE, True),
    ]
    assert failed.results[1].artifacts == (NOTE.path,)
    assert (failed.usage.model_calls, failed.usage.cost, booked(here)["cost"]) == (2, 0.5, 0.5)


def broken(*_args, **_more):
    msg = "the screen is black"
    raise OSError(msg)


async def test_action_that_a_probe_settled_is_not_reported_as_a_doubt(left, monkeypatch):
    here, run = left(Probe.NOT_DONE, intent=intent(), foreseen=(NOTE,))
    monkeypatch.setattr(here.services.policy, "rule", broken)
    failed = await here.pipeline.process_recovered(run)
    assert (type(failed), failed.results) == (StepFailure, ())


async def test_where_a_doubt_fails_the_work_it_is_in_its_results(left):
    here, run = left(Probe.UNKNOWN, intent=intent(), settings={"journal": {"in_doubt": "fail"}}, answers=PAID)
    failed = await here.pipeline.process_recovered(run)
    assert [(result.tool, result.in_doubt) for result in failed.results] == [("append", True)]
    assert failed.usage.cost == 0.5


async def test_a_question_about_a_doubt_counts_nothing_twice(left):
    here, run = left(Probe.UNKNOWN, intent=intent(), answers=PAID)
    asked = await here.pipeline.process_recovered(run)
    assert (type(asked), asked.usage.model_calls) == (Question, 0)
    settled = replace(run, unfinished=replace(run.unfinished, probe=Probe.DONE))
    returned = await here.pipeline.process_recovered(settled)
    assert (returned.usage.model_calls, returned.usage.cost) == (2, 0.5)
    assert booked(here) == {"steps": 1, "model_calls": 2, "tokens": 30, "cost": 0.5}


async def test_answers_that_are_checked_once_more_are_counted_once(stage):
    calls = []

    def model(request):
        calls.append(request.call)
        return {"Status": "FINISH"}

    here = stage(model, limits={"repairs": 2})
    wrong = PAID[0].model_copy(update={"content": {"Status": "no such status"}})
    run = here.run(unfinished=Unfinished(answers=(wrong,)))
    returned = await here.pipeline.process(run)
    assert (calls, returned.usage.model_calls, returned.usage.repairs, returned.usage.cost) == ([2], 2, 1, 0.25)
    assert returned.usage.input_tokens == 10
    assert (booked(here)["model_calls"], booked(here)["cost"]) == (2, 0.25)


async def test_usage_booked_before_a_crash_is_not_booked_again(stage):
    here = stage(lambda _request: {"Status": "CONTINUE", "Function": "append", "Args": TEXT_ARGS}, surface=Looked)
    first = await here.pipeline.process(here.run())
    assert booked(here)["model_calls"] == 1
    step = decided(here, action("a"))
    run = here.run(unfinished=Unfinished(decided=step, answers=(PAID[0],)))
    again = await here.pipeline.process_recovered(run)
    assert (first.usage.model_calls, again.usage.model_calls) == (1, 1)
    assert booked(here)["model_calls"] == 1


TEXT_ARGS = {"control_id": "field-1", "text": "a"}


async def test_pause_keeps_the_files_of_a_call_that_a_crash_broke_off(left):
    notes = tuple(Foreseen(call_id="t~1.1.0", path=f"/w/{name}.txt", after="1") for name in ("one", "two"))
    here, run = left(actions=[action("a")], intent=intent(), foreseen=notes)
    here.surface.probe = lambda _target, _intent, foreseen, fingerprint: (
        Probe.DONE if [note.path for note in foreseen] == ["/w/one.txt"] else Probe.NOT_DONE
    )
    here.lease.paused = True
    paused = await here.pipeline.process_recovered(run)
    assert (paused.held_by, paused.record.results) == (Held.PAUSE, ())
    here.lease.paused = False
    held_run = run.apply(paused)
    resumed = await here.pipeline.process_resume(held_run)
    assert [result.made for result in resumed.record.results] == [("/w/one.txt",)]
    assert held_run.apply(resumed).held_writes == ()


async def test_action_that_a_person_calls_done_lists_the_files_that_it_kept(left):
    here, run = left(actions=[action("a")], intent=intent(), probe=Probe.DONE)
    path = here.services.journal.artifacts.keep("t", "t~1.1.0", b"figures", "", name="report.pdf")
    here.services.journal.artifacts.keep("t", "t~1.1.1", b"of another call", "", name="other.pdf")
    returned = await here.pipeline.process_recovered(run)
    assert [(result.artifacts, result.made) for result in returned.record.results] == [((str(path),), (str(path),))]


@pytest.mark.parametrize("change", [{"path": "host:/w/a.txt"}, {"after": ""}, {"after": "folder"}], ids=str)
async def test_finished_action_lists_no_file_that_it_lists_without_a_crash(left, change):
    note = Foreseen.model_validate({"call_id": "t~1.1.0", "path": "/w/a.txt", "after": "1", **change})
    here, run = left(Probe.DONE, actions=[action("a")], intent=intent(), foreseen=(note,))
    returned = await here.pipeline.process_recovered(run)
    assert [result.artifacts for result in returned.record.results] == [()]
