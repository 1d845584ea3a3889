"""Programs with the rights of another user are found wherever their name stands."""

import pytest

from callboard.actors.servers import ToolError
from callboard.actors.servers.shell._privileged import privileged


@pytest.mark.parametrize(
    "command",
    [
        "sudo ls",
        "/usr/bin/sudo -n ls",
        '"su"do ls',
        "\\sudo ls",
        "ls; sudo ls",
        "ls | sudo tee x",
        "X=1 sudo ls",
        "env sudo ls",
        "env X=1 nice -n 5 sudo ls",
        "timeout -s KILL 5 sudo ls",
        "time sudo ls",
        "command sudo ls",
        "exec sudo ls",
        "ls | xargs -0 sudo rm",
        "find . -exec sudo rm {} +",
        "bash -c 'sudo ls'",
        "sh -c 'ls && sudo ls'",
        "eval sudo ls",
        "eval 'eval sudo ls'",
        'echo "$(sudo ls)"',
        "cat <(sudo ls)",
        "if sudo -n true; then ls; fi",
        "f() { sudo ls; }; f",
        "while sudo ls; do :; done",
        "su - root -c ls",
        "doas ls",
        "pkexec ls",
        "run0 ls",
        "runuser -u x ls",
    ],
)
def test_it_is_found(command):
    assert privileged(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "grep sudo a.log",
        "echo sudo",
        "find . -name sudo",
        "xargs grep sudo",
        "bash -c 'grep sudo x'",
        "cat sudo",
        "apt-get install sudo",
        "eval " * 3000,
        "(" * 5000,
        "'",
    ],
)
def test_a_word_alone_is_none(command):
    assert not privileged(command)


@pytest.mark.parametrize("tool", ["run", "start"])
def test_it_is_refused_before_anything_is_done_and_nobody_is_asked(box, tool):
    command = "touch made; env sudo -n true"
    with pytest.raises(ToolError, match="'sudo' is never run: commands run with the rights of this user only"):
        box.do(tool, command=command)
    assert not (box.work / "made").exists()
    assert not box.look().window["background"]
    assert box.server.hazards(box.target, tool, {"command": command, "cwd": ""}, ()) == set()
