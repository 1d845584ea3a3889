"""JSON that commands print: read exactly, or refused with the line."""

from __future__ import annotations

import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.surfaces import ToolError
from callboard.surfaces.shell._json_output import NoJsonError, parse_json
from support import FINISH, call, lone

REFUSED = {
    b'{"a": 1,\n "b": NaN}': r"NaN is not a JSON value, line 2, column 7: ' \"b\": NaN}'",
    b"[-Infinity]": r"-Infinity is not a JSON value, line 1, column 2",
    b"[1, Infinity]": "Infinity is not a JSON value, line 1, column 5",
    b"[1e999]": "too many digits or is out of range, line 1, column 2: '\\[1e999\\]'",
    b"[-0.01e-400]": "too many digits or is out of range",
    b"[" + b"9" * 5000 + b"]": "too many digits or is out of range, line 1, column 2",
    b'["a", "\\ud800b"]': "half of a surrogate pair, line 1, column 7",
    b'{"\\udc00": 1}': "half of a surrogate pair",
    b'{"a": 1,\n "b": {"a": 2},\n "\\u0061": 3}': "the key 'a' occurs twice in an object, line 3, column 2",
    b"[" * 101 + b"]" * 101: "more than 100 levels",
    b"[" * 100_000 + b"]" * 100_000: "more than 100 levels, line 1, column 101: '…",
    b'["\xe9t\xe9"]': r"byte 0xe9 is not UTF-8, line 1, column 3: '\[\"\\\\xe9t\\\\xe9\"\]'",
    b"warning: old file\n[1]": "expecting value, line 1, column 1: 'warning: old file'",
    b"[1]\ndone\n": "extra data, line 2, column 1: 'done'",
    b"[1,\n\n": "expecting value",
    b"": "expecting value, line 1, column 1: ''",
    b"\xff\xfe[\x00": "UTF-16|expecting",
}


@pytest.mark.parametrize("printed", REFUSED, ids=lambda printed: repr(printed[:30]))
def test_json_that_would_be_changed_is_refused_with_its_line(printed):
    with pytest.raises(NoJsonError, match=REFUSED[printed]) as refusal:
        parse_json(printed)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_json_in_each_unicode_encoding_is_read(encoding):
    value = {"ключ": ["é", "\U0001f600", 10**300, -0.0, 1.5e-300, 0, True, None, "NaN", "a\\"], "b": {"a": {}}}
    assert parse_json(json.dumps(value).encode(encoding)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1).encode(encoding)) == value


ODD = st.sampled_from([float("nan"), float("inf"), "\ud800", "a", 1])
VALUES = st.recursive(
    ODD | st.none() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_json_is_read_as_it_is_or_refused(value):
    text = json.dumps(value)
    odd = re.search(r"NaN|Infinity", re.sub(r'"(\\.|[^"\\])*"', "", text))
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        odd = True
    if odd:
        with pytest.raises(NoJsonError):
            parse_json(text.encode())
    else:
        assert json.dumps(parse_json(text.encode())) == text


@pytest.mark.parametrize(
    ("printed", "quoted"), [("[NaN, 1]", "'[NaN, 1]'"), ("[1", "'[1'"), ('{"a":1,"a":2}', "occurs twice")]
)
def test_agent_sees_why_its_output_is_not_valid_json(start, work, printed, quoted):
    results = []

    def model(request):
        results[:] = [result for record in request.memory for result in record.results]
        return FINISH if results else call("run", command=f"printf %s '{printed}'", read_json=True)

    shells = {"box": {"cwd": work, "isolated": False}}
    start(linux=model, servers=(), shells=shells, policy=[{"verdict": "allow"}]).submit(lone("linux/box")).result(60)
    assert "the command was run, but its output can't be read as JSON" in results[0].error
    assert quoted in results[0].error


def test_an_output_that_was_cut_is_not_read_in_part(box, monkeypatch):
    box.run("true")
    for name in ("_command_process", "_remote"):
        if f"callboard.surfaces.shell.{name}" in sys.modules:
            monkeypatch.setattr(f"callboard.surfaces.shell.{name}.MOST_BYTES", 4)
    with pytest.raises(ToolError, match=r"only [\d,]+ of its 300,000 bytes were kept"):
        box.run("head -c 300000 /dev/zero | tr '\\0' 1", read_json=True)
