"""Names of a package, imported at their first use (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


def lazy_names(
    package: str, homes: Mapping[str, Collection[str]], modules: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package.

    A name is imported with all that its module needs, and nothing else. Type checkers read the imports that the package
    has for them instead.

    Args:
        package: The name of the package.
        homes: Its public names, by the module that has them.
        modules: Its modules that are attributes without an import of their own.
    """
    namespace = vars(sys.modules[package])

    def get(name: str) -> object:
        """Import a public name at its first use."""
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        home = next((module for module, names in homes.items() if name in names), None)
        if home is None:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return namespace.setdefault(name, getattr(importlib.import_module(home), name))

    def names() -> list[str]:
        """List the public names, imported or not."""
        return sorted({*namespace, *namespace["__all__"], *modules})

    return get, names
