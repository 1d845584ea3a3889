"""Browser as a surface: its tabs are targets."""

from callboard.surfaces.browser._browser import BrowserSurface

__all__ = ["BrowserSurface"]
