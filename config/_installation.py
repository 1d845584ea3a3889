"""Commands that install the package's extras, as the package itself was installed."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_PACKAGE = "callboard"


@functools.cache
def install_command(extra: str) -> str:
    """Return the command that installs an extra.

    It names the folder, file or repository that the package was installed from, if it came from no index.
    """
    origin = _origin()
    url = str(origin.get("url", ""))
    if "dir_info" in origin and (folder := Path(url2pathname(urlsplit(url).path))).is_dir():
        option = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {option}{shlex.quote(f'{folder}[{extra}]')}"
    package = f"{_PACKAGE}[{extra}]"
    if "archive_info" in origin:
        package += f" @ {url}"
    elif "vcs_info" in origin:
        package += f" @ {origin['vcs_info']['vcs']}+{url}"
    return f"pip install {shlex.quote(package)}"


def _origin() -> dict[str, Any]:
    """Read the record of a direct installation.

    PyPA's specification describes it. It is empty without one.
    """
    for distribution in importlib.metadata.distributions(name=_PACKAGE):  # a clone as current folder is one, too
        with contextlib.suppress(ValueError):
            origin = json.loads(distribution.read_text("direct_url.json") or "{}")
            if origin and isinstance(origin, dict):
                return origin
    return {}
