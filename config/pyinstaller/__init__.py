"""The folder with PyInstaller's hook, which an entry point names."""

from __future__ import annotations

from pathlib import Path

__all__ = ["hook_folders"]


def hook_folders() -> list[str]:
    """Return the folder, as the entry point `pyinstaller40` has it."""
    return [str(Path(__file__).resolve().parent)]
