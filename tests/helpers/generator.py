"""The script ``docs/generate.py`` as a module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

DOCS = Path(__file__).resolve().parents[2] / "docs"


def load_generator() -> ModuleType:
    """Load the script, with the modules beside it."""
    spec = importlib.util.spec_from_file_location("callboard_docs_generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "path", [str(DOCS), *sys.path]):
        spec.loader.exec_module(module)
    return module


GENERATE = load_generator()
