"""Checks in a HostAgent's prompt and schema, where it may propose some."""

from __future__ import annotations

import jsonschema
import pytest

from callboard.models import ProposingHostResponse
from callboard.models.prompt import answer_schema, prompt_of

HOST = {"kind": "host", "address": "host/t", "target": None}


@pytest.mark.parametrize("required", [True, False])
def test_the_first_answer_may_name_checks(asks, required):
    request = asks(**HOST, response=ProposingHostResponse, proposes=True)
    schema = answer_schema(request, all_required=required)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert list(schema["properties"]) == ["Observation", "Thought", "Decision", "Checks", "Comment"]
    names = set(schema["properties"]["Checks"]["items"]["properties"])
    assert names.isdisjoint({"program", "only", "unchanged", "changed", "source", "show"})


def test_a_check_from_the_schema_is_read_without_its_nulls(asks):
    schema = answer_schema(asks(**HOST, response=ProposingHostResponse, proposes=True))["properties"]["Checks"]
    empty = dict.fromkeys(schema["items"]["properties"])
    second = {**dict.fromkeys(schema["items"]["properties"]["same_as"]["anyOf"][0]["properties"]), "cells": "b.xlsx!A1"}
    given = {**empty, "cells": "a.xlsx!A1", "same_as": second}
    jsonschema.validate([given], schema)
    (check,) = ProposingHostResponse(Status="FINISH", Checks=[given]).proposed()
    assert (str(check), check.expected, check.source) == ("cells a.xlsx!A1", {"same_as": "cells b.xlsx!A1"}, "model")


def test_a_later_answer_has_no_place_for_checks(asks):
    later = asks(**HOST, response=ProposingHostResponse)
    assert "Checks" not in answer_schema(later)["properties"]
    assert "Checks: in your first answer alone" in str(prompt_of(later))  # the beginning of a prompt stays the same


def test_without_the_setting_no_prompt_speaks_of_checks(asks):
    assert "Checks" not in str(prompt_of(asks(**HOST)))
