"""Rules of the policy hold for commands of a task, however the commands are written."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from callboard import EventName, FunctionModel, Settings, Supervisor, Task
from support import FINISH, PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "lies outside of the workspace"
REACHING = r"""
cat {a''.log,../private/secret}
cat {"a.log",../private/secret}
cat {a.l''og,..}/private/secret
cat {a,..}''/private/secret
cat ../{priva,}te/secret
x=../private; cat "$x"{/secret,}
cat ../private/secre[t]
grep -r {o''f,.} {../private,}
head {-n1,../private/secret}
sort {a''.log,-o,../private/new}
tee {n''.txt,../private/new}
cp {a''.log,../private/new}
find {../private'',-type,f,-exec,cat,'{}',';'}
find {.'',-maxdepth,0,-exec,sh,-c,'cat ../private/secret',';'}
for f in {a''.log,../private/secret}; do cat "$f"; done
for f in ../private/*; do cat "$f"; done
for f in ../private/*; do echo "${f}"; done
echo ../private/*
echo ../priv*/*
printf '%s\n' ../private/*
basename -a ../private/*
x='../private'; echo "$x"/*
false || x='../private/*'; echo $x
true ../private/* | cat
seq ../private/*
[ -e ../private/* ]
[[ -e ../private/secret ]] && echo yes
x=(../private/*); echo "${x[@]}"
case a in ../private/*) ;; esac; compgen -G '../private/*'
a=a.log; b=a.log; c=a.log; for f in *; do cat "$a"; a=$b; b=$c; c=../private/secret; done
true && y='keep -exec cat ../private/secret ;'; find . -name $y
cat $'../private/secret'
cat ${z:-../private/secret}
cat "${PWD%/*}/private/secret"
find . -maxdepth 1 -name a.log -exec jq -n '{}|input' ../private/secret ';'
awk '{ print }' {a''.log,../private/secret}
gawk 'BEGIN { while ((getline line < "../private/secret") > 0) print line }'
sed r../private/secret a.log
""".strip().split("\n")
"""Commands that read, list or change something outside of the workspace."""
CHANGING = r"""
find {.'',-name,keep,-delete}
find {.'',-name,keep,-exec,rm,'{}',+}
find . -name keep {-delete,''}
find . -name keep -{delete,print}
sort {a''.log,-o,keep}
sort a.log {--output=,-o}keep
tee {keep,new} < a.log
sed {-i'',s/precious/gone/,keep}
cp {a''.log,keep}
mv {a''.log,keep}
rm {ke''ep,new}
{rm,keep}
$'rm' keep
r\m keep
x=rm; $x keep
for f in k*; do rm "$f"; done
true && y='keep -delete'; find . -name $y
bash -c 'rm keep'
rm k?ep
> keep
>| ke""ep
find . -name keep -exec sh -c 'rm "$1"' _ {} \;
gawk 'BEGIN { f = "sys" "tem"; @f("rm keep") }'
find . -name keep -execdir rm {} +
find . -name keep -fprint keep
""".strip().split("\n")
"""Commands that delete or overwrite a file."""
REVEALING = r"""
gawk 'BEGIN { print SYMTAB["ENVIRON"]["TOKEN"] }'
gawk 'BEGIN { for (n in SYMTAB) if (isarray(SYMTAB[n])) for (i in SYMTAB[n]) print SYMTAB[n][i] }'
awk 'BEGIN { for (n in ENVIRON) print ENVIRON[n] }'
jq -n env.TOKEN
jq -n '$ENV.TOKEN'
find . -name '1|env|.TOKEN|@base64' -exec jq {} numbers ';'
for f in 1*; do jq "$f" numbers; done
echo {$TOKEN,x}
echo "${TOKEN}" ${TOKEN:0:3}
cat <<< "$TOKEN"
""".strip().split("\n")
"""Commands that print a variable of the settings."""
DENY = [{"verdict": "deny", "hazards": ["leaves", "unknown", "deletes", "overwrites"]}]


class Workspace:
    """A workspace with a folder beside it, and a task that runs commands there."""

    def __init__(self, top: Path) -> None:
        self.top, self.work = top, top / "work"
        for name, text in (("work/a.log", "one"), ("work/keep", "precious"), ("private/secret", SECRET)):
            (top / name).parent.mkdir(exist_ok=True)
            (top / name).write_text(f"{text}\n", encoding="utf-8")
        (self.work / "numbers").write_text("1", encoding="utf-8")
        (self.work / "1|env|.TOKEN|@base64").touch()

    def files(self) -> dict[str, str]:
        """Return the contents of all files."""
        return {str(path): path.read_text(encoding="utf-8") for path in self.top.rglob("*") if path.is_file()}

    def results(self, commands: list[str], *, policy: list[Any], dry_run: bool = False) -> list[str]:
        """Run a task with these commands; return their results as texts."""
        answers = [{"Status": "CONTINUE", "Function": "run", "Args": {"command": command}} for command in commands]
        shell = {"cwd": str(self.work), "isolated": False, "env": {"TOKEN": "of-the-settings"}}
        count = len(commands) + 10
        settings = Settings.load(
            shells={"box": shell},
            policy=policy,
            limits={"steps": count, "action_failures": count, "repeats": count},
            log={"stream": "off"},
        )
        model = FunctionModel(lambda request: [*answers, FINISH][min(request.call - 1, len(answers))])
        with Supervisor.start(settings, models={"linux": model}) as supervisor:
            handle = supervisor.submit(Task(request="run them", target="linux/box", dry_run=dry_run))
            handle.result(PATIENCE)
            events = handle.events()
            ended = [event.data for event in events if event.name is EventName.COMMAND_ENDED]
        return [str(data) for data in ended]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a workspace."""
    return Workspace(tmp_path.resolve())


def test_commands_of_a_task_are_denied_however_they_are_written(workspace: Workspace) -> None:
    before = workspace.files()
    commands = [*REACHING, *CHANGING, *REVEALING]
    results = workspace.results(commands, policy=DENY)
    executed = [command for command, result in zip(commands, results, strict=True) if "denied" not in result]
    assert executed == []
    assert workspace.files() == before


def test_a_dry_run_executes_no_command_however_it_is_written(workspace: Workspace) -> None:
    before = workspace.files()
    workspace.results([*CHANGING, *REACHING], policy=DENY, dry_run=True)
    assert workspace.files() == before


def test_a_command_that_stays_in_the_workspace_is_not_denied(workspace: Workspace) -> None:
    commands = ["cat {a'.'log,keep}", "echo *", "for f in {a,b}.log; do echo $f; done", "head -n {1,2} a.log"]
    results = workspace.results(commands, policy=DENY)
    assert [command for command, result in zip(commands, results, strict=True) if "denied" in result] == []


def test_a_denied_folder_is_not_listed_by_a_pattern(workspace: Workspace) -> None:
    rules = [{"verdict": "deny", "resource": f"file:{workspace.top}/private/*"}, {"verdict": "allow"}]
    commands = [command for command in REACHING if "../private/*" in command]
    rules[1:1] = [{"verdict": "deny", "resource": "unknown"}]
    results = workspace.results(commands, policy=rules)
    assert [command for command, result in zip(commands, results, strict=True) if "denied" not in result] == []


def _repository(place: Path, *, bare: bool = False, settings: str = "") -> Path:
    subprocess.run(["git", "init", "-q", *(["--bare"] if bare else []), str(place)], check=True)  # noqa: S607
    folder = place if bare else place / ".git"
    shutil.rmtree(folder / "hooks")
    (folder / "config").write_text(f"[core]\nrepositoryformatversion = 0\n{settings}", encoding="utf-8")
    return folder


def test_no_repository_that_git_finds_instead_starts_a_program(workspace: Workspace) -> None:
    starts = f'fsmonitor = "touch {workspace.top}/started; false"\n'
    bare = _repository(workspace.work / "good" / "bare", bare=True, settings=f"bare = false\nworktree = .\n{starts}")
    (bare / "HEAD").unlink()
    (bare / "HEAD").symlink_to("refs/heads/main")
    _repository(workspace.work / "good")
    _repository(workspace.work / "bad", settings=starts)
    (workspace.work / "bad" / "empty" / ".git").mkdir(parents=True)
    results = workspace.results(["cd good/bare; git status", "cd bad/empty; git status"], policy=DENY)
    assert ["denied" in result for result in results] == [True, True]
    assert not (workspace.top / "started").exists()


@pytest.mark.parametrize("command", ["cp -r deep over", "cp -Rv deep over", "cp -a deep over", "cp -r a.log deep over"])
def test_no_folder_is_copied_through_a_link_in_another_one(workspace: Workspace, command: str) -> None:
    for name in ("deep/inner", "over/deep/inner"):
        (workspace.work / name).mkdir(parents=True)
    (workspace.work / "deep" / "inner" / "secret").write_text("replaced", encoding="utf-8")
    (workspace.work / "over" / "deep" / "inner" / "secret").symlink_to(workspace.top / "private" / "secret")
    rules = [{"verdict": "deny", "hazards": ["leaves", "unknown"]}, {"verdict": "allow"}]
    (result,) = workspace.results([command], policy=rules)
    assert "denied" in result
    assert (workspace.top / "private" / "secret").read_text(encoding="utf-8") == f"{SECRET}\n"
