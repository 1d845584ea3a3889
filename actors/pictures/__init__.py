"""Pictures of surfaces: what must not be seen is blacked out, and labels say which control is which.

Needs Pillow: ``pip install 'callboard[pictures]'``.
"""

from callboard.actors.pictures._drawing import Drawn, PictureError, draw, require_pillow

__all__ = ["Drawn", "PictureError", "draw", "require_pillow"]
