"""Files of YAML: mistakes are refused with their lines, in every kind of file."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ScriptedModel, Settings
from callboard.config import YamlError, load_yaml, parse_yaml
from callboard.messages import ScriptError, SettingsError
from support import command_line

TWICE = """\
policy:
  - {verdict: deny, tool: "*"}
limits: {steps: 3}
policy: []
"""
PIECES = [
    *(
        "a",
        "1",
        " ",
        "\n",
        ": ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "<<",
        "|",
        ">",
        "'",
        '"',
        "#",
        "%",
        "\t",
    ),
    *(
        "!!int ",
        "!!float ",
        "!!bool ",
        "!!null ",
        "!!str ",
        "!!timestamp ",
        "!!binary ",
        "!!set ",
        "!!omap ",
        "!!pairs ",
    ),
    *(
        "2001-99-99",
        "0x",
        "1:99",
        "1e",
        "\\U00110000",
        "\\x",
        "---",
        "...",
        "\x00",
        "\ufeff",
        "~",
        "=",
        "!!python/none ",
    ),
]
"""Pieces of texts that are nearly YAML."""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "given.yaml"


@pytest.mark.parametrize(
    ("text", "key", "first", "second"),
    [
        (TWICE, "'policy'", 1, 4),
        ("limits:\n  steps: 1\n  repairs: 2\n  steps: 3\n", "'steps'", 2, 4),
        ("a: {b: 1, c: 2, b: 3}", "'b'", 1, 1),
        ("- a: 1\n  a: 1\n", "'a'", 1, 2),
        ("yes: 1\ntrue: 2\n", "'true'", 1, 2),
        ('"a": 1\na: 2\n', "'a'", 1, 2),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_both_lines(file, text, key, first, second):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(YamlError) as refused:
        load_yaml(file)
    assert str(refused.value) == f"{file}: the key {key} appears twice, in lines {first} and {second}: merge them"


def test_merged_key_may_be_overridden(file):
    file.write_text("base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\n", encoding="utf-8")
    assert load_yaml(file) == {"base": {"a": 1, "b": 2}, "more": {"a": 1, "b": 3}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"a: [1", "is not valid YAML: expected ',' or ']', but got '<stream end>' (line 1, column 6)"),
        (b"a: \xff", "is not UTF-8 text (byte 4): save it as UTF-8"),
        (b"a: \x00", "is not valid YAML: it has a character that YAML does not allow"),
        (rb'a: "\U00110000"', "is not valid YAML: it has a character that YAML does not allow"),
        (rb'a: "\UFFFFFFFF"', "is not valid YAML: it has a character that YAML does not allow"),
        (b"[" * 20_000, "is not valid YAML: it is nested too deeply"),
        (
            b"b: 1\na: 2001-99-99",
            "is not valid YAML: the value in line 2 reads as a date, but is not: put it in quotes",
        ),
        (b"a: !!timestamp x", "is not valid YAML: the value in line 1 reads as a date"),
        (b"a: !!bool x", "is not valid YAML: the value in line 1 reads as true or false"),
        (b"a: !!int ''", "is not valid YAML: the value in line 1 reads as a whole number"),
        (b"a: !!set [x]", "is not valid YAML: expected a mapping node, but found sequence"),
        (b"? !!set\n", "is not valid YAML: found unhashable key"),
        (None, "can't be read: No such file or directory"),
    ],
)
def test_invalid_yaml_error_names_the_place(file, text, says):
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(YamlError) as refused:
        load_yaml(file)
    assert str(refused.value).startswith(f"{file}: {says}")


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(YamlError):
        parse_yaml(text)


def test_file_is_refused_from_a_size_on(file):
    file.write_text("a: 1\n")
    assert load_yaml(file, most_bytes=5) == {"a": 1}
    with pytest.raises(YamlError, match=r"given\.yaml: has 5 bytes, and at most 4 are possible"):
        load_yaml(file, most_bytes=4)


def test_settings_scripts_and_tasks_are_read_so(file, tmp_path):
    file.write_text(TWICE, encoding="utf-8")
    says = "the key 'policy' appears twice, in lines 1 and 4"
    with pytest.raises(SettingsError, match=says):
        Settings.load(file)
    with pytest.raises(ScriptError, match=says):
        ScriptedModel.load(file)
    (tmp_path / "callboard.yaml").write_text("limits: {steps: 3}\n", encoding="utf-8")
    (tmp_path / "task.yaml").write_text("request: a\nrequest: b\n", encoding="utf-8")
    told = command_line("run", tmp_path)
    assert told.exit_code == 2
    assert "the key 'request' appears twice, in lines 1 and 2" in " ".join(told.output.split())


def test_aliases_that_multiply_are_refused(file):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    file.write_text("\n".join(lines))
    with pytest.raises(YamlError, match="more than 1,000,000 parts"):
        load_yaml(file)
    file.write_text("a: &a [x]\nb: [*a, *a]\n")
    assert load_yaml(file) == {"a": ["x"], "b": [["x"], ["x"]]}


def test_an_alias_is_refused_where_none_is_allowed(file):
    file.write_text("a: &a [x]\nb:\n- *a\n")
    with pytest.raises(YamlError, match=r"has an alias \(`\*`\) in line 3"):
        load_yaml(file, aliases=False)
    file.write_text("a: [x]\nb: &b [y]\n")
    assert load_yaml(file, aliases=False) == {"a": ["x"], "b": ["y"]}
