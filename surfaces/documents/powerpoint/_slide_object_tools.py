"""PowerPoint tools for charts and pictures, and the place of shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from lxml import etree
from pydantic import Field

from callboard.messages import ESSENTIAL, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._find_text import find_pattern
from callboard.surfaces.documents._tables import (
    Answer,
    Cell,
    Color,
    ControlId,
    ControlName,
    Document,
    clean,
    listed,
    nearest,
    width_of,
)
from callboard.surfaces.documents._total_words import totals_at_end
from callboard.surfaces.documents.powerpoint import _slide_pictures as pictures
from callboard.surfaces.documents.powerpoint._chart_numbers import ChartNumbers
from callboard.surfaces.documents.powerpoint._deck import a, p, path
from callboard.surfaces.documents.powerpoint._deck_controls import control_of, find
from callboard.surfaces.documents.powerpoint._deck_editor import (
    CHART,
    POWERPOINT,
    SHAPES,
    TEXT_OR_TABLE,
    Place,
    PowerPointEditor,
    frame_for,
    frame_of,
    shape_answer,
    target_of,
)
from callboard.surfaces.documents.powerpoint._graphic_frames import put_frame
from callboard.surfaces.documents.powerpoint._shapes import add_shape, next_shape_id
from callboard.surfaces.documents.powerpoint._slide_charts import (
    SlideChartType,
    add_chart,
    set_chart_title,
    write_numbers,
)
from callboard.surfaces.documents.powerpoint._slide_fonts import SlideFont

if TYPE_CHECKING:
    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.powerpoint._shapes import Frame, SlideShape

ChartHeader = Annotated[list[str], Field(description="The title of the categories, then the name of each series.")]
ChartRows = Annotated[list[list[Cell]], Field(description="A category and the number of each series in a row.")]
ChartColumns = Annotated[list[str], Field(description="The series to draw, by header; empty for all.")]
WithoutTotals = Annotated[bool, Field(description="Whether rows of totals at the end are left out.")]
Crop = Annotated[
    list[float],
    Field(max_length=4, description="The percent to cut off at the left, top, right and bottom; empty for none."),
]
AlternativeText = Annotated[str, Field(description="What a picture shows, for people who do not see it.")]


class SlideObjectTools(PowerPointEditor):
    """The tools of charts, pictures and places in ``.pptx`` files."""

    @tool(effect=Effect.ONCE, roots=POWERPOINT)
    def insert_chart(
        self,
        document: Document,
        control_id: Annotated[
            str, Field(description="The id of a slide, such as slide-3, or of an empty placeholder.")
        ],
        type: Annotated[SlideChartType, Field(description="The kind of chart.")],  # noqa: A002 - the usual name
        header: ChartHeader,
        rows: ChartRows,
        *,
        title: Annotated[str, Field(description="The chart's title.", json_schema_extra={ESSENTIAL: True})] = "",
        columns: ChartColumns = [],  # noqa: B006 - read only
        without_totals: WithoutTotals = False,
        place: Place = [],  # noqa: B006 - read only
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a chart that PowerPoint can edit, with its data.

        It fills an empty placeholder of the slide, else a free place.
        """
        header, rows, totals = _chart_table(header, rows, columns, without_totals=without_totals)
        numbers = ChartNumbers.of_rows(header, rows, type)
        with self._editing(document) as file:
            slide, placeholder = target_of(file, control_id, control_name, "chart")
            frame = frame_for(slide, place, placeholder)
            slide.edit()
            element = add_chart(slide, type, numbers, frame, next_shape_id(slide), title=clean(title))
            put_frame(slide, element, placeholder)
            return file.answers(shape_answer(slide, element) | totals)

    @tool(effect=Effect.IDEMPOTENT, roots=POWERPOINT, controls=CHART)
    def write_chart(
        self,
        document: Document,
        control_id: ControlId,
        *,
        header: ChartHeader = [],  # noqa: B006 - read only
        rows: ChartRows = [],  # noqa: B006 - read only
        title: Annotated[str | None, Field(description="The new title; empty for none, null to leave it.")] = None,
        columns: ChartColumns = [],  # noqa: B006 - read only
        without_totals: WithoutTotals = False,
        control_name: ControlName = "",
    ) -> Answer:
        """Replace the data of a chart, or change its title.

        Its kind, colors and place stay.
        """
        if title is None and not rows:
            msg = "nothing to change: pass header and rows, or a title"
            raise ToolError(msg)
        totals: Answer = {}
        if rows:
            header, rows, totals = _chart_table(header, rows, columns, without_totals=without_totals)
        with self._editing(document) as file:
            shape = find(file, control_id, control_name).need("chart")
            if not shape.chart_part:
                msg = f"{control_id!r} is an empty placeholder; insert_chart fills it"
                raise ToolError(msg)
            has_lost_sheets = write_numbers(shape, header, rows) if rows else False
            if title is not None:
                set_chart_title(file.package.edit(shape.chart_part), clean(title))
            answer = control_of(shape.slide, shape.element) | totals
            return file.answers(answer | ({"lost": "other sheets of the chart's workbook"} if has_lost_sheets else {}))

    @tool(effect=Effect.ONCE, roots=POWERPOINT, seconds=90)
    def insert_picture(
        self,
        document: Document,
        control_id: Annotated[
            str, Field(description="The id of a slide, such as slide-3, or of an empty placeholder.")
        ],
        path: Annotated[str, Field(description="The picture's path within the workspace, such as logo.png.")],
        *,
        alternative_text: AlternativeText = "",
        crop: Crop = [],  # noqa: B006 - read only
        place: Place = [],  # noqa: B006 - read only
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a picture of the workspace into a slide.

        It keeps its proportions within its place. An empty placeholder for pictures is filled, and what stands over is
        cut off.
        """
        picture = self._workspace.read(path)
        data, size = pictures.upright_picture(picture)
        cut = _crop(crop)
        cropped = pictures.cropped_size(size, cut)
        with self._editing(document) as file:
            slide, placeholder = target_of(file, control_id, control_name, "picture")
            frame = frame_for(slide, place, placeholder)
            if placeholder is not None and placeholder.kind == "picture" and not crop:
                cut = pictures.filling_crop(size, frame)
            else:
                frame = pictures.contained(cropped, frame)
            slide.edit()
            text = clean(alternative_text)
            link = pictures.embed(slide, data, picture.path.suffix.lower())
            element = pictures.make_picture(link, frame, next_shape_id(slide), text)
            pictures.set_crop(element, cut)
            if placeholder is None:
                add_shape(slide, element)
            else:
                pictures.fill_placeholder(placeholder, element)
            return file.answers(shape_answer(slide, element))

    @tool(effect=Effect.IDEMPOTENT, roots=POWERPOINT, controls=SHAPES)
    def format_shape(
        self,
        document: Document,
        control_id: ControlId,
        *,
        place: Annotated[
            list[float],
            Field(max_length=4, description="Left, top, width and height in percent of the slide; empty to leave it."),
        ] = [],  # noqa: B006 - read only
        alternative_text: Annotated[str | None, Field(description="Null to leave it.")] = None,
        crop: Annotated[
            list[float] | None,
            Field(
                max_length=4, description="Of a picture: percent cut off at left, top, right, bottom; null to leave it."
            ),
        ] = None,
        find_text: Annotated[str, Field(description="Set the font of this text alone; empty for all of it.")] = "",
        font: Annotated[str, Field(description="The font's name, such as Arial; empty to leave it.")] = "",
        size: Annotated[float | None, Field(ge=1, le=4000, description="Of the text, in points.")] = None,
        bold: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        italic: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        underline: Annotated[bool | None, Field(description="Null to leave it.")] = None,
        color: Annotated[Color, Field(description="#RRGGBB or a name like red; none; empty to leave it.")] = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Set the place, alternative text, crop or font of a shape.

        Omitted properties stay.
        """
        text_font = SlideFont(font, size, bold, italic, underline, color)
        if not place and alternative_text is None and crop is None and not text_font:
            msg = "nothing to set: pass place, alternative_text, crop, font, size, bold, italic, underline or color"
            raise ToolError(msg)
        with self._editing(document) as file:
            control = find(file, control_id, control_name)
            shape = control.need(*(TEXT_OR_TABLE if text_font else SHAPES))
            shape.slide.edit()
            if text_font:
                _set_font(shape, text_font, find_text)
            if place:
                _place(shape, frame_of(shape.slide, place))
            if alternative_text is not None:
                shape.facts.set("descr", clean(alternative_text))
            if crop is not None:
                pictures.set_crop(shape.element, _crop(crop))
            return file.answers(shape_answer(shape.slide, shape.element))


def _chart_table(
    header: list[str], rows: list[list[Cell]], columns: list[str], *, without_totals: bool
) -> tuple[list[str], list[list[Cell]], Answer]:
    """Return the header and rows to draw, and a note on totals.

    Raises:
        ToolError: If the rows differ in length, or a column is not named in the header.
    """
    width = width_of(rows, header)
    indexes = [0, *range(1, width)]
    if columns:
        names = {" ".join(name.split()).casefold(): number for number, name in reversed([*enumerate(header)])}
        keys = [" ".join(column.split()).casefold() for column in columns]
        if unknown_columns := [column for column, key in zip(columns, keys, strict=True) if key not in names]:
            column = unknown_columns[0]
            msg = f"there is no column {column!r}; there are: {listed(header[1:])}{nearest(column, header[1:])}"
            raise ToolError(msg)
        indexes = [0, *(names[key] for key in keys if names[key])]
    texts = [header, *(["" if cell is None else str(cell) for cell in row] for row in rows)]
    totals = totals_at_end(texts)
    drawn_rows = rows[: len(rows) - len(totals)] if without_totals else rows
    note: Answer = {} if without_totals or not any(totals) else {"totals_drawn": [*totals]}
    return [header[number] for number in indexes], [[row[number] for number in indexes] for row in drawn_rows], note


def _crop(crop: list[float]) -> pictures.Crop:
    """Return the four sides of a crop; zeros for an empty one.

    Raises:
        ToolError: If there are fewer.
    """
    if not crop:
        return 0.0, 0.0, 0.0, 0.0
    if len(crop) != 4:
        msg = f"the crop {crop} is none; give the percent for the left, top, right and bottom, such as 10, 0, 10, 0"
        raise ToolError(msg)
    left, top, right, bottom = crop
    return left, top, right, bottom


def _set_font(shape: SlideShape, font: SlideFont, find_text: str) -> None:
    """Set the font of a text or table, or of a part.

    Raises:
        ToolError: If the part does not occur in it, or the color is none.
    """
    pattern = find_pattern(clean(find_text)) if find_text else None
    count = font.apply_to(list(shape.element.iter(a("p"))), pattern)
    if find_text and not count:
        msg = f"{find_text!r} does not occur in {shape.id!r}, or only in a field or formula; no font was set"
        raise ToolError(msg)


def _place(shape: SlideShape, frame: Frame) -> None:
    """Put a shape at a place.

    Raises:
        ToolError: If it stands in a group.
    """
    element = shape.element
    if element.getparent() is not shape.slide.shapes:
        msg = f"{shape.id!r} stands in a group, whose parts are not moved one by one"
        raise ToolError(msg)
    owner, name = (element, p("xfrm")) if element.find(p("spPr")) is None else (element.find(p("spPr")), a("xfrm"))
    transform = owner.find(name)
    if transform is None:
        transform = etree.Element(name)
        owner.insert(0 if owner is not element else 1, transform)
    for tag, values in (("off", {"x": frame.left, "y": frame.top}), ("ext", {"cx": frame.width, "cy": frame.height})):
        mark = transform.find(a(tag))
        if mark is None:
            mark = etree.SubElement(transform, a(tag))
        for key, value in values.items():
            mark.set(key, str(value))
    if (table := shape.table) is not None:
        _scale_table(table, frame)


def _scale_table(table: Element, frame: Frame) -> None:
    """Give a table's columns and rows the size of its frame."""
    for lines, name, size in (
        (table.findall(path("a:tblGrid", "a:gridCol")), "w", frame.width),
        (table.findall(a("tr")), "h", frame.height),
    ):
        total = sum(int(line.get(name, "0")) for line in lines)
        for line in lines:
            line.set(name, str(int(line.get(name, "0")) * size // total if total else size // len(lines)))
