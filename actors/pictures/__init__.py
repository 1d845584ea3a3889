"""Pictures of surfaces: what must not be seen is black, labels name the controls, and marks show points.

Needs Pillow: ``pip install 'callboard[pictures]'``.
"""

from callboard.actors.pictures._drawing import (
    Drawn,
    PictureError,
    draw,
    fitting_size,
    only_pixels,
    require_pillow,
    scaled,
)

__all__ = ["Drawn", "PictureError", "draw", "fitting_size", "only_pixels", "require_pillow", "scaled"]
