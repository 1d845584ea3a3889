"""Show the calls of docstrings as code, by an extension of griffe.

griffe reads the public API for the site.
"""
# ruff: noqa: INP001 - imported by griffe

from __future__ import annotations

from typing import Any

import griffe


class DocstringExamples(griffe.Extension):
    """Read sections ``Example`` as ``Examples``: griffe takes the singular for a note."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
