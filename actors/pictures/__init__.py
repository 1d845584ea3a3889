"""Pictures of surfaces: black over secrets, labels on controls, marks at points.

Needs Pillow: ``pip install '.[pictures]'``.
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
