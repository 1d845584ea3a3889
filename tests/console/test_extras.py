"""The extras of the package, and what of each is missing: read from metadata, as pip would follow it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from callboard.console import _extras
from callboard.console._extras import extras, missing_distributions

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def require(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the requirements of distributions; there are no others."""

    def given(**requirements: list[str]) -> None:
        def of(distribution: str) -> list[str]:
            if distribution not in requirements:
                raise _extras.importlib.metadata.PackageNotFoundError(distribution)
            return requirements[distribution]

        monkeypatch.setattr(_extras.importlib.metadata, "requires", of)

    return given


def test_all_extras_are_told_but_those_of_developers():
    assert set(extras()) == set(PROJECT["optional-dependencies"]) - {"test", "dev", "local-llm"}


@pytest.mark.parametrize("extra", ["models", "otel", "prometheus"])
def test_an_extra_that_the_tests_install_lacks_nothing(extra):
    assert missing_distributions(extra) == ()


def test_what_is_missing_is_named_also_behind_other_extras(require: Callable[..., None]) -> None:
    require(
        callboard=["pykka>=4", 'callboard[models]; extra == "all"', "lamps>=1; extra == 'all'", 'other; extra == "x"'],
        slim=['net-io>=2; extra == "open-ai"', 'old; python_version < "3" and extra == "open-ai"'],
    )
    assert missing_distributions("all") == ("lamps",)
    require(callboard=['callboard[models]; extra == "all"', 'slim[open_ai,b]>=2; extra == "models"'], slim=[
        'net-io[c]>=2; (extra == "open-ai")', 'old; python_version < "3" and extra == "open-ai"'])  # fmt: skip
    assert missing_distributions("all") == ("net-io",)


def test_extras_that_name_each_other_end(require: Callable[..., None]) -> None:
    require(callboard=['callboard[b]; extra == "a"', 'callboard[a]; extra == "b"'])
    assert missing_distributions("a") == ()
