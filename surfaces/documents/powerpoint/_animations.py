"""The animations of a slide, when the shapes that they move change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents.powerpoint._deck import a, p

if TYPE_CHECKING:
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape


def remove_animations(shape: SlideShape, *, paragraphs: int | None = None) -> None:
    """Remove the animations of a shape that is deleted or shortened.

    Args:
        shape: The shape, on a slide that is edited.
        paragraphs: How many paragraphs it has now: only animations of later ones are removed. None if it is deleted.
    """
    root, number = shape.slide.root, shape.facts.get("id")
    timing = root.find(p("timing"))
    if timing is None:
        return
    for target in [target for target in timing.iter(p("spTgt")) if target.get("spid") == number]:
        ends = [int(span.get("end", "0")) for span in target.iter(p("pRg"))]
        is_left = timing in target.iterancestors()
        if is_left and (paragraphs is None or any(end >= paragraphs for end in ends)):
            _remove_node(timing, target)
    for build in [build for builds in timing.iter(p("bldLst")) for build in builds if build.get("spid") == number]:
        if paragraphs is None:
            _remove_with_empty(build)
    if not any(True for _ in timing.iter(p("spTgt"))) or timing.find(p("tnLst")) is None:
        root.remove(timing)


def _remove_node(timing: Element, target: Element) -> None:
    """Remove a step of an animation, and steps that are empty then."""
    node = target
    while node.getparent() is not timing and local(node.getparent()) != "childTnLst":
        node = node.getparent()
    while True:
        steps = node.getparent()
        steps.remove(node)
        if len(steps) or local(steps) != "childTnLst":
            return
        node = steps.getparent().getparent()  # the step that this list is a part of


def _remove_with_empty(element: Element) -> None:
    parent = element.getparent()
    parent.remove(element)
    if not len(parent):
        parent.getparent().remove(parent)


def paragraph_count(shape: SlideShape) -> int:
    """Count the paragraphs of a shape."""
    body = shape.body
    return 0 if body is None else len(body.findall(a("p")))
