"""The next value of a frozen dataclass with many fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace as evolve  # the same, and types are checked as there
else:

    def evolve(value: Any, **changes: Any) -> Any:
        """Do what `dataclasses.replace` does, without a walk through all fields: each message makes a run anew.

        For dataclasses without slots, without ``__post_init__``, and with nothing cached on the instance.

        Raises:
            TypeError: If there is no such field.
        """
        new = object.__new__(type(value))
        fields = new.__dict__
        fields.update(value.__dict__)
        known = len(fields)
        fields.update(changes)
        if len(fields) != known:
            msg = f"{type(value).__name__} has no field {', '.join(sorted(changes.keys() - value.__dict__.keys()))}"
            raise TypeError(msg)
        return new


__all__ = ["evolve"]
