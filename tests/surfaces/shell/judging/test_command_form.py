"""A value that is put into a command stays a part of it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard.messages import ActionGuard
from callboard.surfaces.shell.judging import command_form

pytest.importorskip("tree_sitter_bash")

MARK = "7" * 29 + "1"
SIGNS = [
    *";|&<>()[]{}$`'\"\\*?~!#=-+^%@,:./ \n\t", "a", "B", "7", "_", "ü",
    "rm", "-rf", "--x=", "&&", "||", ">>", "<<<", "$(", "${", "$'", "if", "then", "do", "done", "/etc", "..", "2>&1",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(SIGNS), max_size=6).map("".join)
COMMANDS = [
    "cat {}",
    "cat '{}'",
    'cat "{}"',
    "cat data/{}.csv x",
    "cat -k{} x",
    "cat --key={} x",
    "cat a; cat x {}",
    "cat a | cat {} b",
    "for f in a {}; do cat $f; done",
    "A={} cat x",
    "if cat {}; then cat b; fi",
    "cat a\\ {}",
    "cat {} {}",
    "cat {} # {}",
    "cat $(cat {})",
    "cat <<E\n{}\nE",
    "cat a{{b,{}}}",
    "cat 'a'{}",
    "{} cat x",
    "cat x\n{}",
    "cat x && {}",
]
SCRIPT = """
cat() {{ printf '<%s' "$#" "$@"; printf '>\\n'; }}
{}
"""


def is_same(template, *values):
    """Compare the forms of a command with marks, and with values."""
    marks = [MARK[:-1] + str(number) for number, _ in enumerate(values)]
    guard = ActionGuard(step=1, marked={}, texts=dict(zip(marks, values, strict=True)))
    return guard.changed_form(command_form(template.format(*marks)), command_form(template.format(*values))) is None


def words_of(command, folder):
    """List the calls of a function `cat` that bash makes; there are no programs."""
    script = SCRIPT.format(command)
    environment = {"PATH": "/nowhere", "HOME": "/home/x"}
    bash = shutil.which("bash")
    return subprocess.run([bash, "-c", script], capture_output=True, env=environment, cwd=folder, check=False).stdout


@given(st.sampled_from(COMMANDS), HOSTILE | st.from_regex(r"[a-z0-9./]{1,8}", fullmatch=True))
@example("cat {}", "-rf")
@example("cat {}", "; cat x")
@example("cat '{}'", 'a; $(b) "c"')
@example('cat "{}"', "a; (b) 'c'")
@example("cat {}", "may.csv")
@settings(deadline=None, max_examples=300)
def test_bash_makes_the_same_calls_with_a_value_that_passes(template, value):
    if not is_same(template, value, value):
        return
    with tempfile.TemporaryDirectory() as folder:
        recorded = words_of(template.format("PLACE", "PLACE"), folder)
        assert words_of(template.format(value, value), folder) == recorded.replace(b"PLACE", value.encode())
        assert not list(Path(folder).iterdir())


@pytest.mark.parametrize(
    "template", ["cat {}", "cat '{}'", 'cat "{}"', "sort {} > out", "echo a >> {}", "python3 x.py {}"]
)
def test_names_of_files_are_values(template):
    assert is_same(template, "data/june-2026.csv")


def test_quoted_texts_are_values():
    assert is_same("grep '{}' x", "a; (b) | $c")
    assert is_same('grep "{}" x', "two words & more")
    assert not is_same("grep {} x", "two words")
    assert not is_same('grep "{}" x', "$(touch evil)")


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("rm {}", "-rf"),
        ("rm '{}'", "-rf"),
        ("sort -k{} x", "1r"),
        ("head -n {} x", "-1"),
        ("cat {}", "*"),
        ("cat *.{}", "*"),
        ("cat ${{HOME}}/{}", "$USER"),
        ("{} x", "rm"),
        ("cat x | {}", "sh"),
        ("env {} x", "rm"),
        ("timeout 5 {} x", "rm"),
        ("xargs {} < x", "rm"),
        ("xargs -I [] {} [] < x", "rm"),
        ("xargs -0 {} < x", "rm"),
        ("find . -exec {} x ';'", "rm"),
        ("timeout -s KILL 5 {} x", "rm"),
        ("env -u A {} x", "rm"),
        ("stdbuf -o L {} x", "rm"),
        ("sudo -u bob {} x", "rm"),
        ("ssh -l bob host {} x", "rm"),
        ("bash -o pipefail -c '{} x'", "rm"),
        ("bash {}", "other.sh"),
        ("bash -c '{}'", "reboot"),
        ("bash -c 'cat {}'", "a; reboot"),
        ("bash -c 'cat {}'", "a b"),
        ("eval {}", "reboot"),
        ("ssh host 'cat {}'", "a; reboot"),
        ("python3 -c 'print(\"{}\")'", '"+x()+"'),
        ("python3 x.py '{}'", "$(reboot)"),
        ("sed s/a/{}/ x", "b/e;"),
        ("awk '{{ print {} }}' x", 'system("reboot")'),
        ("find . -name {}", "!"),
        ("cat $(ls {})", "; reboot"),
        ("cat $({} x)", "reboot"),
        ("cat <<E\n{}\nE", "E\nreboot"),
        ("export A={}", "1 B=2"),
        ("PATH={} cat x", "a:$b"),
        ("echo {}>out", "2"),
        ("for f in {}; do cat $f; done", "a b"),
        ("git {} x", "--exec=reboot"),
    ],
)
def test_value_that_changes_the_form_does_not_pass(template, value):
    assert not is_same(template, value)


def test_numbers_in_options_are_values():
    assert is_same("head -n{} x", "20")
    assert is_same("head --lines={} x", "20")
    assert is_same("timeout {} cat x", "20")


def test_values_in_scripts_are_letters_and_digits():
    assert is_same("awk '/{}/ {{ print $1 }}' x", "june")
    assert is_same("bash -c 'cat {}'", "june")
    assert not is_same("bash -c 'cat {}'", "data/june")


@pytest.mark.parametrize(
    "template",
    [
        "xargs -0 grep {} < x",
        "xargs -I [] cp [] {} < x",
        "xargs -n 1 cat {} < x",
        "xargs -n1 cat {} < x",
        "timeout -s KILL 5 cat {}",
        "env -i A=1 cat {}",
        "sudo -n cat {}",
        "nice -n 5 cat {}",
        "bash -eu x.sh {}",
        "bash -c 'cat $1' x {}",
        "find . -exec grep {} x ';'",
    ],
)
def test_words_of_a_program_that_another_one_runs_are_values(template):
    assert is_same(template, "june")


def test_forms_do_not_depend_on_quotes():
    assert command_form("cat 'a b'") == command_form('cat "a b"') == command_form("cat a\\ b")
    assert command_form("cat a b") != command_form("cat 'a b'")
