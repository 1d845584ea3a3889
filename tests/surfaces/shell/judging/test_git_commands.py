"""Git in the workspace is read only where its settings start no programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from callboard.messages import Effect, Hazard
from callboard.surfaces.shell._base_shell import PATH
from callboard.surfaces.shell.judging._disk import LocalDisk
from callboard.surfaces.shell.judging._judge import judge

ENVIRONMENT = {"PATH": PATH, "HOME": "/nowhere", "LANG": "C.UTF-8"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository with one commit."""
    place = tmp_path_factory.mktemp("made").resolve()
    (place / "a.txt").write_text("x\n", encoding="utf-8")
    by = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], [*by, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=place, env={**ENVIRONMENT, "HOME": str(place)}, check=True)  # noqa: S607
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """Copy it."""
    subprocess.run(["cp", "-a", str(made), str(tmp_path / "work")], check=True)  # noqa: S607 - whichever there is
    return tmp_path / "work"


def judged(place: Path, command: str, home: str = "/nowhere"):
    return judge(command, cwd=place, disk=LocalDisk(place), environment={**ENVIRONMENT, "HOME": home})


READS = [
    "log",
    "log --oneline -5",
    "log -p a.txt",
    "show HEAD~0",
    "show --stat",
    "rev-parse HEAD",
    "branch -a",
    "ls-files",
]


@pytest.mark.parametrize(
    "words", [*READS, "--no-pager log", "--no-optional-locks status -sb", "blame a.txt", "log --all --graph"]
)
def test_reading_git_commands_are_judged_as_reads(place, words):
    found = judged(place, f"git {words}")
    assert (found.effect, found.hazards, found.why) == (Effect.READ, frozenset(), "")


def test_reading_git_commands_change_no_file(place):
    os.utime(place / "a.txt", (1, 1))  # so that the index is behind
    before = sorted((str(path), path.stat().st_mtime_ns) for path in place.rglob("*"))
    script = "; ".join(f"git {words}" for words in (*READS, "--no-optional-locks status", "blame a.txt"))
    assert judged(place, script).effect is Effect.READ
    subprocess.run(["bash", "-c", script], cwd=place, env=ENVIRONMENT, check=False, stdout=subprocess.DEVNULL)  # noqa: S607
    assert sorted((str(path), path.stat().st_mtime_ns) for path in place.rglob("*")) == before


@pytest.mark.parametrize("words", ["status", "diff", "diff --stat HEAD", "--no-optional-locks diff"])
def test_commands_that_rewrite_the_index_may_be_repeated(place, words):
    found = judged(place, f"git {words}")
    assert (found.effect, found.hazards) == (Effect.IDEMPOTENT, frozenset())


def test_a_file_elsewhere_leaves(place):
    assert judged(place, "git diff /etc/passwd a.txt").hazards == {Hazard.LEAVES}


@pytest.mark.parametrize(
    "setting",
    [
        "[core]\nfsmonitor = ./run",
        "[core] fsmonitor = ./run",
        "[core]\nhooksPath = .",
        "[core]\n# x\x0b[color]\nfsmonitor = ./run",
        "[core]\nsshCommand = ./run",
        "[diff]\nexternal = ./run",
        '[diff "x"]\ntextconv = ./run',
        '[filter "x"]\nclean = ./run',
        "[gpg]\nprogram = ./run",
        "[log]\nshowSignature = true",
        "[include]\npath = x",
        '[includeIf "gitdir:/"]\npath = x',
        "[alias]\nlog = !./run",
        "[extensions]\nworktreeConfig = true",
        '[remote "origin"]\npromisor = true',
        "[user]\nname = x\\\n",
    ],
)
def test_a_setting_that_may_start_a_program_asks(place, setting, tmp_path):
    with (place / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(f"{setting}\n")
    assert Hazard.UNKNOWN in judged(place, "git log").hazards
    home = tmp_path / "home"
    home.mkdir()
    (place / ".git" / "config").rename(home / ".gitconfig")
    assert Hazard.UNKNOWN in judged(place, "git log", str(home)).hazards


def _hook(place):
    (place / ".git" / "hooks" / "post-index-change").touch()


def _inside(place):
    (place / "deep" / ".git").mkdir(parents=True)


def _bare(place):
    (place / ".git" / "config").rename(place / "config")
    (place / "HEAD").touch()


def _elsewhere(place):
    (place / ".git").rename(place / "other")
    (place / ".git").write_text("gitdir: other", encoding="utf-8")


def _linked(place):
    (place / ".git").rename(place / "other")
    (place / ".git").symlink_to("other")


def _modules(place):
    (place / ".git" / "modules").mkdir()


def _shared(place):
    (place / ".git" / "commondir").write_text("/", encoding="utf-8")


def _bare_with_a_linked_head(place):
    (place / ".git" / "config").rename(place / "config")
    (place / "HEAD").symlink_to("refs/heads/main")


def _without_objects(place):
    (place / ".git" / "objects").rename(place / "objects")


def _without_refs(place):
    (place / ".git" / "refs").rename(place / "refs")


def _head_is_no_revision(place):
    (place / ".git" / "HEAD").write_text("ref: elsewhere\n", encoding="utf-8")


def _head_is_a_link(place):
    (place / ".git" / "HEAD").rename(place / ".git" / "other")
    (place / ".git" / "HEAD").symlink_to("other")


FORMS = [
    _hook,
    _inside,
    _bare,
    _bare_with_a_linked_head,
    _elsewhere,
    _linked,
    _modules,
    _shared,
    _without_objects,
    _without_refs,
    _head_is_no_revision,
    _head_is_a_link,
]


@pytest.mark.parametrize("change", FORMS)
def test_a_repository_of_another_form_asks(place, change):
    change(place)
    assert Hazard.UNKNOWN in judged(place, "git status").hazards


@pytest.mark.parametrize(
    "command",
    [
        "echo x > a.txt; git status",
        "git log --format=%G?",
        "git log --format='%+G?'",
        "git log --format '% GK'",
        "git show --pretty=format:%-G?",
        "git branch x",
        "git log --output=x",
        "git stash",
    ],
)
def test_git_command_that_may_do_more_has_an_unknown_hazard(place, command):
    assert Hazard.UNKNOWN in judged(place, command).hazards


def test_a_repository_around_the_workspace_asks(place):
    (place / "deep").mkdir()
    found = judge("git log", cwd=place / "deep", disk=LocalDisk(place / "deep"), environment=ENVIRONMENT)
    assert Hazard.UNKNOWN in found.hazards
