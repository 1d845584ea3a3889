"""A console in the browser, and a report of one file.

It shows the work of each agent, the requests that wait for people, and the reasons of failures.

It needs ``pip install '.[console]'``. `app` makes an application to mount in a program of your own,
and `report` a file of one task, which needs Jinja2 alone. `Language` has the texts of both in another language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names

if TYPE_CHECKING:
    from callboard.config import Language
    from callboard.console._application import app
    from callboard.console._server import ConsoleServer, new_link
    from callboard.console._task_report import report

__all__ = ["ConsoleServer", "Language", "app", "new_link", "report"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "callboard.config": ("Language",),
        "callboard.console._application": ("app",),
        "callboard.console._server": ("ConsoleServer", "new_link"),
        "callboard.console._task_report": ("report",),
    },
)
