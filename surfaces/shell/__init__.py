"""Shells on Linux machines: commands and files in workspaces."""

from callboard.surfaces.shell._shells import ShellSurface

__all__ = ["ShellSurface"]
