"""The frames of tables and charts on slides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces.documents.powerpoint._deck import p, parse_xml, path, placeholder_of
from callboard.surfaces.documents.powerpoint._shapes import add_shape

if TYPE_CHECKING:
    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.powerpoint._deck import Slide
    from callboard.surfaces.documents.powerpoint._shapes import Frame, SlideShape


def graphic_frame(data: str, frame: Frame, number: int, name: str) -> Element:
    """Make the frame of a table or chart."""
    return parse_xml(
        f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="{number}" name="{name}"/><p:cNvGraphicFramePr>'
        '<a:graphicFrameLocks noGrp="1"/></p:cNvGraphicFramePr><p:nvPr/></p:nvGraphicFramePr>'
        f'<p:xfrm><a:off x="{frame.left}" y="{frame.top}"/><a:ext cx="{frame.width}" cy="{frame.height}"/></p:xfrm>'
        f"<a:graphic>{data}</a:graphic></p:graphicFrame>"
    )


def take_name(element: Element, placeholder: SlideShape) -> None:
    """Give a shape the number and name of its placeholder."""
    for name in ("id", "name"):  # animations refer to the number
        next(element.iter(p("cNvPr"))).set(name, placeholder.facts.get(name, ""))


def put_frame(slide: Slide, element: Element, placeholder: SlideShape | None) -> None:
    """Put a table or chart into a placeholder, or in front."""
    if placeholder is None:
        add_shape(slide, element)
        return
    element.find(path("p:nvGraphicFramePr", "p:nvPr")).append(placeholder_of(placeholder.element))
    take_name(element, placeholder)
    placeholder.element.getparent().replace(placeholder.element, element)
