"""Tasks in front ends that speak AG-UI, the Agent-User Interaction protocol.

It needs ``pip install '.[agui]'``. `app` makes an application to mount in a program of your own.
"""

from callboard.agui._front_ends import app

__all__ = ["app"]
