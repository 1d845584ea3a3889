"""Pictures on slides: new ones, their crop and their alternative text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._formats import read_in_process
from callboard.surfaces.documents._package import R_ID, Element, Package, local
from callboard.surfaces.documents.powerpoint._deck import a, p, parse_xml, path, placeholder_of
from callboard.surfaces.documents.powerpoint._graphic_frames import take_name

if TYPE_CHECKING:
    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.powerpoint._deck import Slide
    from callboard.surfaces.documents.powerpoint._shapes import Frame, SlideShape

_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
}
Crop = tuple[float, float, float, float]
"""The percentages cut off at the left, top, right and bottom."""
_SIDES = ("l", "t", "r", "b")


def upright_picture(snapshot: Snapshot) -> tuple[bytes, tuple[int, int]]:
    """Return a picture's bytes, and its width and height in pixels.

    One that a camera marked as turned is turned, because no slide shows it so.

    Raises:
        ToolError: If it can't be read, or PowerPoint knows no such pictures.
    """
    suffix = snapshot.path.suffix.lower()
    if suffix not in _TYPES:
        msg = f"{snapshot.document!r} can't stand on a slide; save it as .png first: {', '.join(_TYPES)} can"
        raise ToolError(msg)
    facts = read_in_process({"what": "size"}, snapshot, "pictures")[0]
    size, data = (int(facts["width"]), int(facts["height"])), snapshot.data
    if "turned" in facts:
        options = {"quality": 90} if facts["format"] == "JPEG" else {}
        request = {"what": "convert", "format": facts["format"], "size": None, "options": options}
        data = read_in_process(request, snapshot, "pictures")[1]
    return data, size


def embed(slide: Slide, data: bytes, suffix: str) -> str:
    """Put a picture into the file, once; return the slide's link."""
    package = slide.file.package
    part = _same_part(package, data)
    if not part:
        part = package.free_name(f"ppt/media/image{{}}{suffix}")
        package.ensure_default(suffix[1:], _TYPES[suffix])
        package.add(part, data, _TYPES[suffix])
    links = (link.id for link in package.relationships(slide.part) if link.target == part and link.type == "image")
    return next(links, "") or package.relate(slide.part, "image", part)


def _same_part(package: Package, data: bytes) -> str:
    media = (part for part in package if part.startswith("ppt/media/"))
    return next((part for part in media if package.bytes_of(part) == data), "")


def make_picture(link: str, frame: Frame, number: int, text: str) -> Element:
    """Make a picture for a slide.

    Args:
        link: The id of the link to its part.
        frame: Its place.
        number: The number of the shape.
        text: Its alternative text.
    """
    left, top, width, height = frame.left, frame.top, frame.width, frame.height
    picture = parse_xml(
        f'<p:pic><p:nvPicPr><p:cNvPr id="{number}" name="Picture {number}"/><p:cNvPicPr>'
        f'<a:picLocks noChangeAspect="1"/></p:cNvPicPr><p:nvPr/></p:nvPicPr><p:blipFill><a:blip r:embed="{link}"/>'
        f'<a:stretch><a:fillRect/></a:stretch></p:blipFill><p:spPr><a:xfrm><a:off x="{left}" y="{top}"/>'
        f'<a:ext cx="{width}" cy="{height}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>'
    )
    next(picture.iter(p("cNvPr"))).set("descr", text)
    return picture


def fill_placeholder(shape: SlideShape, picture: Element) -> None:
    """Put a picture in the place of an empty placeholder."""
    mark = placeholder_of(shape.element)
    picture.find(path("p:nvPicPr", "p:nvPr")).append(mark)
    take_name(picture, shape)
    shape.element.getparent().replace(shape.element, picture)


def contained(size: tuple[int, int], frame: Frame) -> Frame:
    """Fit a picture into the middle of a frame, in its proportions."""
    scale = min(frame.width / size[0], frame.height / size[1])
    width, height = round(size[0] * scale), round(size[1] * scale)
    left, top = frame.left + (frame.width - width) // 2, frame.top + (frame.height - height) // 2
    return replace(frame, left=left, top=top, width=width, height=height)


def filling_crop(size: tuple[int, int], frame: Frame) -> Crop:
    """Return the crop with which a picture fills a frame."""
    wide, high = size[0] * frame.height, size[1] * frame.width
    if wide > high:
        side = 50 * (1 - high / wide)
        return side, 0, side, 0
    side = 50 * (1 - wide / high)
    return 0, side, 0, side


def cropped_size(size: tuple[int, int], crop: Crop) -> tuple[int, int]:
    """Return the size of a picture without what is cut off.

    Raises:
        ToolError: If nothing is left.
    """
    left, top, right, bottom = crop
    if left + right >= 100 or top + bottom >= 100 or min(crop) < 0:
        msg = "the crop leaves nothing: give the percentages cut off at the left, top, right and bottom"
        raise ToolError(msg)
    return max(1, round(size[0] * (100 - left - right) / 100)), max(1, round(size[1] * (100 - top - bottom) / 100))


def set_crop(picture: Element, crop: Crop) -> None:
    """Set the crop of a picture.

    Raises:
        ToolError: If it leaves nothing, or the shape is no picture.
    """
    cropped_size((1, 1), crop)
    fill = picture.find(p("blipFill"))
    if fill is None:
        msg = "only a picture can be cropped"
        raise ToolError(msg)
    old = fill.find(a("srcRect"))
    if old is not None:
        fill.remove(old)
    if any(crop):
        new = etree.Element(a("srcRect"))
        for side, percent in zip(_SIDES, crop, strict=True):
            if percent:
                new.set(side, str(round(percent * 1000)))
        fill.insert(sum(local(child) == "blip" for child in fill), new)


def unused_links(slide: Slide, element: Element) -> list[str]:
    """List the slide's links that only a removed shape used."""
    used_links = set(_links_in(slide.root))
    return [link for link in _links_in(element) if link not in used_links]


def _links_in(root: Element) -> list[str]:
    prefix = R_ID.removesuffix("id")
    return [
        value
        for element in root.iter(etree.Element)
        for name, value in element.attrib.items()
        if name.startswith(prefix)
    ]
