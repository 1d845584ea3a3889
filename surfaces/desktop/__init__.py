"""Linux desktop as a surface, by accessibility and by synthetic input."""

from callboard.surfaces.desktop._desktop import DesktopSurface

__all__ = ["DesktopSurface"]
