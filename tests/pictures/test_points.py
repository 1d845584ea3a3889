"""Marks show a point on any background, and leave the point itself to be seen."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from callboard.actors.pictures import PictureError, draw, fitting_size, scaled

POINT = (100, 80)


def png(colour, size=(200, 160)):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def opened(picture):
    return Image.open(io.BytesIO(picture)).convert("RGB")


def light(colour):
    return sum(colour) / 3


@pytest.mark.parametrize("colour", [(255, 255, 255), (0, 0, 0), (128, 128, 128), (200, 0, 60)], ids=str)
def test_a_mark_stands_out_from_any_background(colour):
    shown = opened(draw(png(colour), (), {}, [[POINT]]).annotated)
    seen = {shown.getpixel((POINT[0] + away, POINT[1] + away)) for away in range(8, 20)}
    assert max(abs(light(each) - light(colour)) for each in seen) > 100
    assert shown.getpixel(POINT) == colour
    assert shown.getpixel((POINT[0] + 40, POINT[1] + 40)) == colour


def test_the_clean_picture_has_no_mark():
    picture = png((255, 255, 255))
    assert draw(picture, (), {}, [[POINT]]).clean == picture


def test_a_drag_is_a_line_between_two_marks():
    shown = opened(draw(png((0, 0, 0)), (), {}, [[(40, 80), (160, 80)]]).annotated)
    assert shown.getpixel((100, 80)) != (0, 0, 0)
    assert shown.getpixel((100, 100)) == (0, 0, 0)


def test_a_point_at_an_edge_is_marked_as_far_as_it_can_be():
    shown = opened(draw(png((0, 0, 0)), (), {}, [[(0, 0)], [(199, 159)], [(5_000, 5_000)]]).annotated)
    assert shown.size == (200, 160)
    assert len(shown.getcolors()) == 3


@pytest.mark.parametrize("size", [(1, 1), (1024, 768), (1920, 1080), (3840, 2160), (20_000, 10), (1568, 1568)], ids=str)
def test_a_picture_is_scaled_down_to_what_providers_leave_as_it_is(size):
    width, height = fitting_size(size)
    assert max(width, height) <= 1_568
    assert width * height <= 1_150_000
    assert (width, height) == size or abs(width / height / (size[0] / size[1]) - 1) < 0.3
    assert fitting_size((width, height)) == (width, height)


def test_small_pictures_stay_as_they_are():
    assert fitting_size((1280, 800)) == (1280, 800)


def test_a_scaled_picture_shows_the_same():
    assert opened(scaled(png((1, 2, 3)), (20, 16))).getcolors() == [(320, (1, 2, 3))]


def test_a_damaged_picture_is_no_picture():
    with pytest.raises(PictureError, match="not a PNG, or is damaged"):
        scaled(b"\x89PNG", (10, 10))
