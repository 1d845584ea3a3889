"""Shells on Linux machines: commands and files in workspaces."""

from callboard.surfaces.shell._shells import ShellServer

__all__ = ["ShellServer"]
