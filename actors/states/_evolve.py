"""A fast copy with changes for frozen dataclasses with many fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace as evolve  # same contract, so type checkers can check the fields
else:

    def evolve(value: Any, **changes: Any) -> Any:
        """Copy a dataclass with changes, like `dataclasses.replace` but faster.

        `dataclasses.replace` iterates over all fields, and every message creates a new run. Only for dataclasses
        without slots, without ``__post_init__`` and without cached attributes on the instance.

        Raises:
            TypeError: If there is no such field.
        """
        new = object.__new__(type(value))
        fields = new.__dict__
        fields.update(value.__dict__)
        field_count = len(fields)
        fields.update(changes)
        if len(fields) != field_count:
            msg = f"{type(value).__name__} has no field {', '.join(sorted(changes.keys() - value.__dict__.keys()))}"
            raise TypeError(msg)
        return new


__all__ = ["evolve"]
