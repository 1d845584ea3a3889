"""Validation errors of files and options, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import keys_of, plain_problems

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


def problem_lines(where: object, error: ValidationError, model: type[BaseModel]) -> str:
    """Describe the errors of a validation, a line each.

    Each begins with the file or option that has it. An unknown key gets the nearest known one of the model.
    """
    return "\n".join(f"{where}: {line}" for line in plain_problems(error.errors(), keys_of(model)))
