"""Commands, as the policy sees them."""

import pytest

from callboard.config import ShellSettings, install_command
from callboard.messages import Coverage, Effect, Hazard
from callboard.surfaces.shell import ShellSurface

DELETES, UNKNOWN = Hazard.DELETES, Hazard.UNKNOWN
READ = {"command": "wc -l *.log", "cwd": ""}


def test_a_read_has_no_hazards_and_may_be_repeated(local):
    assert local.surface.hazards(local.target, "run", READ, ()) == set()
    assert local.surface.effect(local.target, "run", READ) is Effect.READ
    assert local.surface.effect(local.target, "run", {**READ, "cwd": "/tmp"}) is Effect.ONCE  # noqa: S108 - the shell is there then
    assert local.surface.resources(local.target, "run", READ) == (f"file:{local.work}",)


def test_a_background_command_is_never_repeated(local):
    assert local.surface.hazards(local.target, "start", READ, ()) == set()
    assert local.surface.effect(local.target, "start", READ) is None


@pytest.mark.parametrize("command", ["make", "ls $(x)", "cat <<EOF"])
def test_unparsed_command_is_unknown(local, command):
    call = {"command": command, "cwd": ""}
    assert local.surface.hazards(local.target, "run", call, ()) == {UNKNOWN}
    assert local.surface.effect(local.target, "run", call) is Effect.ONCE
    assert local.surface.resources(local.target, "run", call) == ("unknown",)


def test_a_command_on_another_machine_is_judged_by_its_files(remote, machine):
    (remote.work / "a.log").write_text("x")
    (remote.work / "link").symlink_to("/etc/passwd")
    folder = f"file:ssh://{machine.section['ssh']}{remote.work}"
    assert remote.surface.hazards(remote.target, "run", READ, ()) == set()
    assert remote.surface.effect(remote.target, "run", READ) is Effect.READ
    assert remote.surface.resources(remote.target, "run", READ) == (folder,)
    assert remote.surface.coverage(remote.target, f"{folder}/secret", folder) is Coverage.PART
    for command, hazard in (
        ("make", UNKNOWN),
        ("cat ../x", UNKNOWN),
        ("cat link", UNKNOWN),
        ("cat /etc/passwd", UNKNOWN),
        ("rm a.log", DELETES),
    ):
        call = {"command": command, "cwd": ""}
        assert remote.surface.hazards(remote.target, "run", call, ()) == {hazard}, command
        assert remote.surface.effect(remote.target, "run", call) is Effect.ONCE, command


def test_commands_are_unknown_where_another_machines_files_are_not_listed(remote, monkeypatch):
    (remote.work / "a.log").write_text("x")
    monkeypatch.setattr("callboard.surfaces.shell._remote_files._FOUND_BYTES", 20)
    assert remote.surface.hazards(remote.target, "run", READ, ()) == {UNKNOWN}
    assert remote.surface.effect(remote.target, "run", READ) is Effect.ONCE


def test_the_folder_and_variables_of_the_shell_count(local):
    (local.work / "deep").mkdir()
    up = {"command": "cat ../x"}
    assert local.surface.hazards(local.target, "run", {**up, "cwd": ""}, ()) == {Hazard.LEAVES}
    assert local.surface.hazards(local.target, "run", {**up, "cwd": "deep"}, ()) == set()
    local.run("cd deep")
    assert local.surface.hazards(local.target, "run", {**up, "cwd": ""}, ()) == set()
    local.run("export LD_PRELOAD=''")
    assert local.surface.hazards(local.target, "run", READ, ()) == {UNKNOWN}


def test_a_rule_for_a_file_is_about_a_command_that_reads_its_folder(local):
    folder = f"file:{local.work}"
    for pattern, coverage in (
        (f"{folder}*", Coverage.ALL),
        (f"{folder}/secret.txt", Coverage.PART),
        ("file:*.txt", Coverage.PART),
        ("re:file:.*", Coverage.ALL),
        ("re:file:.*/secret", Coverage.PART),
        ("file:/elsewhere/*", Coverage.NONE),
        (f"{folder}s/*", Coverage.NONE),
    ):
        assert local.surface.coverage(local.target, pattern, folder) is coverage
    assert local.surface.coverage(local.target, "file:*.txt", f"{folder}/a.log") is Coverage.NONE


def test_the_parser_is_an_optional_need(tmp_path):
    options = {"shells": {"box": ShellSettings(cwd=tmp_path)}}
    need = next(need for need in ShellSurface.needs(options) if "tree_sitter" in need.what)
    assert (need.met, need.optional, need.command) == (True, True, install_command("shell"))
