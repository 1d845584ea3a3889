"""The pictures of the console: their script still takes them."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest
from PIL import Image

from chromium import need_browser

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "console_pictures.py"


@pytest.fixture
def script(monkeypatch, tmp_path):
    """Load the script, with models that answer at once."""
    need_browser()
    pytest.importorskip("playwright")
    spec = importlib.util.spec_from_file_location("console_pictures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for name, value in {"DOCS": tmp_path, "THOUGHT_SECONDS": 0.0, "SHOP": ("127.0.0.1", port)}.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_script_takes_the_pictures_of_the_documents(script, tmp_path):
    script.main()
    names = {path.name for path in SCRIPT.parent.glob("console_*.png")}
    assert {path.name for path in tmp_path.glob("*.png")} == names
    for name in names:
        with Image.open(tmp_path / name) as picture, Image.open(SCRIPT.parent / name) as stored:
            assert picture.size == stored.size == tuple(script.SIZE.values())
