"""Proposals are kept beside a routine, and promoted in one step."""

from __future__ import annotations

import dataclasses
import stat

import pytest

from callboard.messages import Routine, RoutineError
from callboard.routines import (
    RoutineProposal,
    _promotion,
    dump,
    load_routine,
    promote,
    proposal_path,
    stored_proposal,
    write_proposal,
)


def routine(name="field-1", text="x", **facts):
    action = {"tool": "write", "arguments": {"text": text}, "control": 0}
    step = {"status": "CONTINUE", "controls": [{"kind": "field", "name": name}], "actions": [action]}
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": [step, {"status": "FINISH"}]}
    return Routine.model_validate({"routine": "fill", "request": "Fill it", "subtasks": [subtask], **facts})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "fill.routine.yaml"
    path.write_text(f"# a comment\n{dump(routine())}", encoding="utf-8")
    path.chmod(0o640)
    return path


def proposal(*, old=None, **facts):
    base = old or routine()
    return RoutineProposal("t1", "", base, routine(**facts, proposal_for=base.digest))


def test_proposal_is_written_beside_the_routine(file):
    path = write_proposal(proposal(name="other"), file)
    assert path == proposal_path(file) == file.with_name("fill.routine.proposed.yaml")
    assert "Proposed from the task t1" in path.read_text(encoding="utf-8")
    assert load_routine(path).proposal_for == routine().digest
    assert "+" in stored_proposal(file).difference
    assert load_routine(file) == routine()


def test_proposal_for_an_edited_routine_is_not_written(file):
    file.write_text(dump(routine("edited")), encoding="utf-8")
    with pytest.raises(RoutineError, match="was changed since the task t1"):
        write_proposal(proposal(name="other"), file)
    assert not proposal_path(file).exists()


def test_promotion_keeps_the_former_version(file):
    former = file.read_bytes()
    write_proposal(proposal(name="second"), file)
    version = promote(file)
    assert version == file.with_name("fill.routine.1.yaml")
    assert version.read_bytes() == former
    assert load_routine(file) == routine("second")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert not proposal_path(file).exists()
    write_proposal(proposal(old=routine("second"), name="third"), file)
    assert promote(file).name == "fill.routine.2.yaml"
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "fill.routine.1.yaml",
        "fill.routine.2.yaml",
        "fill.routine.yaml",
    ]


def test_promotion_without_a_proposal_is_refused(file):
    with pytest.raises(RoutineError, match=r"has no proposed change: fill.routine.proposed.yaml is not there"):
        promote(file)


def test_proposal_for_another_version_is_not_promoted(file):
    write_proposal(proposal(name="other"), file)
    file.write_text(dump(routine("edited")), encoding="utf-8")
    with pytest.raises(RoutineError, match="is for another version"):
        promote(file)
    assert load_routine(file) == routine("edited")


def test_forbidden_proposal_is_not_promoted(file):
    write_proposal(dataclasses.replace(proposal(), proposed=_with_target("memo:evil")), file)
    with pytest.raises(RoutineError, match=r"edit the routine by hand.*\n.*adds the app target 'memo:evil'"):
        promote(file)
    assert load_routine(file) == routine()
    assert proposal_path(file).exists()


def _with_target(target):
    content = routine(proposal_for=routine().digest).model_dump(mode="json")
    content["subtasks"][0]["target"] = target
    return Routine.model_validate(content)


def test_new_value_is_promoted_by_a_person_alone(file):
    write_proposal(proposal(text="/etc/passwd"), file)
    with pytest.raises(RoutineError, match='"/etc/passwd" is a new value'):
        promote(file, without_person=True)
    assert promote(file).exists()
    assert load_routine(file) == routine(text="/etc/passwd")


@pytest.mark.parametrize("name", ["spare_file", "publish_file", "replace_file"])
def test_promotion_is_completed_after_a_crash(file, monkeypatch, name):
    """A crash at any change leaves the routine or its repair."""
    former = file.read_bytes()
    write_proposal(proposal(name="second"), file)
    real, calls = getattr(_promotion, name), 0

    def crash(*arguments):
        nonlocal calls
        calls += 1
        if name != "spare_file":
            real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_promotion, name, crash)
        with pytest.raises(KeyboardInterrupt):
            promote(file)
    assert calls == 1
    assert load_routine(file) in (routine(), routine("second"))
    promote(file)
    assert load_routine(file) == routine("second")
    assert not proposal_path(file).exists()
    assert file.with_name("fill.routine.1.yaml").read_bytes() == former
    assert not file.with_name("fill.routine.2.yaml").exists()


def test_link_to_a_routine_stays_a_link(file, tmp_path):
    link = tmp_path / "links" / "fill.routine.yaml"
    link.parent.mkdir()
    link.symlink_to(file)
    write_proposal(proposal(name="second"), file)
    assert promote(link) == file.with_name("fill.routine.1.yaml")
    assert link.is_symlink()
    assert load_routine(link) == routine("second")
