"""Models whose validators are built at their first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from inspect import Signature


class _Signature:
    """The signature of a model's constructor, for `inspect.signature`.

    pydantic sets it when it builds a model, and gives models that are not built that of any keywords.
    """

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        """Build the model; its own signature then replaces this one."""
        owner.model_rebuild()
        return owner.__signature__


class DeferredModel(BaseModel):
    """A base of models that are built at their first use.

    A short command needs a few of over a hundred, and building them all would be a fifth of its time. Threads may share
    a model that is not built yet: pydantic builds one at a time.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give the class a signature that builds it."""
        super().__init_subclass__(**kwargs)
        cls.__signature__ = _Signature()  # type: ignore[assignment] # a descriptor, until the model is built
