"""A real local language model; skipped without its weights or server."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import Settings, Supervisor
from server import serving
from weights import WEIGHTS

HERE = Path(__file__).resolve().parent
SECONDS = 600


def _missing(why: str) -> None:
    if os.environ.get("REQUIRE_LOCAL_LLM"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def llm() -> Iterator[str]:
    """Run a language model, and give its address."""
    path = WEIGHTS[os.environ.get("LOCAL_LLM", "1.5b")].path
    if not path.is_file():
        _missing(f"the weights are not there: python {HERE.name}/fetch.py puts them to {path}")
    if importlib.util.find_spec("xllamacpp") is None:
        _missing("xllamacpp is not installed: pip install '.[local-llm]'")
    with serving(path) as url:
        yield url


@pytest.fixture
def begin(llm: str) -> Iterator[Callable[..., Supervisor]]:
    """Start a supervisor with the language model; agents take one step."""
    running = []
    provider = {"url": llm, "temperature": 0, "seed": 1, "actions": 1, "short": True}
    provider |= {"input_price": 0, "output_price": 0}

    def start(*, given: dict[str, Any] | None = None, servers: list[Any] | None = None, **sections: Any) -> Supervisor:
        given = given or {}
        named = {kind: "local:model" for kind in ("host", "app", "mobile", "linux") if kind not in given}
        settings = Settings.load(
            models=named,
            providers={"local": provider},
            limits={"steps": 1, "repairs": 0, "model_seconds": SECONDS, "step_seconds": SECONDS},
            **sections,
        )
        supervisor = Supervisor.start(settings, models=given, servers=servers or [])
        running.append(supervisor)
        return supervisor

    yield start
    for supervisor in running:
        supervisor.stop()
