"""Lists that the recorded run read are left out of routines."""

from __future__ import annotations

import pytest

from callboard.routines._old_data import data_key, leaves, old_data


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("1,204,900", 1204900),
        ("1.204.900", 1204900.0),
        ("1 204 900 €", "$1,204,900"),
        ("412.5", 412.5),
        (" Aarhus ", "aarhus"),
    ],
)
def test_values_are_known_in_any_notation(read, written):
    assert data_key(read) == data_key(written) != ""


@pytest.mark.parametrize(("one", "other"), [("Kiel", "Kiel 2"), (412.5, 413), ("A1:E5", "15"), ("-", "123")])
def test_other_values_are_not_known(one, other):
    assert data_key(one) != data_key(other)


def test_short_values_have_no_key():
    assert [data_key(value) for value in ("", "A1", 7, " 12 ", "—")] == [""] * 5


def test_leaves_are_texts_and_numbers():
    assert list(leaves({"a": ["x", 1, None, True, {"b": 2.5}], "c": None})) == ["x", 1, 2.5]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"rows": [["Aarhus", 412_300], ["Bergen", "new"]]}, [(".rows", 3, "Aarhus")]),
        ([{"city": "Aarhus", "n": 1}, {"city": "Bergen", "n": 2}, {"city": "412,300"}], [("", 3, "Aarhus")]),
        ({"rows": [["Aarhus", "new"], ["Bergen", "newer"]]}, []),  # two may be equal by chance
        ({"rows": [["Aarhus", "a", "b"], ["Bergen", "c", "d"], ["412300", "e", "f"]]}, []),  # most of it is new
        ({"rows": [["${item.0}", "Aarhus"], ["Bergen", "${item.1}"]]}, []),
        (
            {"rows": [["${steps.1.output.0}", "Aarhus"], ["${a}", "Bergen"], ["${b}", 412_300]]},
            [(".rows", 3, "Aarhus")],
        ),
        ({"columns": ["Aarhus", "Bergen", "412300"]}, []),
        ("Aarhus Bergen 412300", []),
    ],
)
def test_lists_of_known_values_are_found(value, found):
    keys = {data_key(part) for part in ("Aarhus", "Bergen", "412,300")}
    assert [tuple(data) for data in old_data("", value, lambda part: data_key(part) in keys)] == found
