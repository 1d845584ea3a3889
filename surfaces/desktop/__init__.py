"""Linux desktop as a surface, by accessibility and by synthetic input."""

from callboard.surfaces.desktop._desktop import DesktopServer

__all__ = ["DesktopServer"]
