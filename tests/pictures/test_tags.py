"""Places of labels: within the picture, near their controls, apart where possible."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.pictures._tags import place_tags
from callboard.messages import Box

CANVAS = (800, 600)
SIZE = (18, 15)


def placed(boxes, canvas=CANVAS, size=SIZE):
    named = {str(number): box for number, box in enumerate(boxes)}
    return named, place_tags(named, dict.fromkeys(named, size), canvas)


def common(one, other):
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return max(0, width) * max(0, height)


def distance(one, other):
    across = max(other.x - one.x - one.width, one.x - other.x - other.width, 0)
    down = max(other.y - one.y - one.height, one.y - other.y - other.height, 0)
    return max(across, down)


def test_where_there_is_room_a_label_covers_nothing():
    boxes = [Box(x=100 * column + 40, y=80 * row + 40, width=50, height=20) for column in range(7) for row in range(6)]
    _, tags = placed(boxes)
    assert sum(common(tag, box) for tag in tags.values() for box in boxes) == 0


def test_labels_of_a_dense_table_do_not_cover_each_other():
    boxes = [Box(x=60 * column, y=20 * row, width=60, height=20) for column in range(13) for row in range(30)]
    _, tags = placed(boxes)
    assert sum(common(one, other) for one, other in itertools.combinations(tags.values(), 2)) == 0


def test_labels_of_a_row_of_small_buttons_do_not_cover_each_other():
    boxes = [Box(x=22 * column, y=30, width=22, height=22) for column in range(30)]
    named, tags = placed(boxes)
    assert sum(common(one, other) for one, other in itertools.combinations(tags.values(), 2)) == 0
    assert max(distance(named[label], tag) for label, tag in tags.items()) <= SIZE[1]


def test_overlapping_controls_get_separate_labels():
    boxes = [Box(x=100, y=100, width=40, height=40)] * 12
    _, tags = placed(boxes)
    assert sum(common(one, other) for one, other in itertools.combinations(tags.values(), 2)) == 0


boxes = st.lists(
    st.builds(Box, x=st.integers(0, 780), y=st.integers(0, 580), width=st.integers(1, 20), height=st.integers(1, 20)),
    max_size=40,
)


@given(boxes)
def test_each_label_is_within_the_picture_and_near_its_control(given_boxes):
    named, tags = placed(given_boxes)
    assert tags.keys() == named.keys()
    for label, tag in tags.items():
        assert 0 <= tag.x <= CANVAS[0] - tag.width
        assert 0 <= tag.y <= CANVAS[1] - tag.height
        assert distance(named[label], tag) <= 4 * SIZE[1]


def test_a_picture_smaller_than_its_labels_is_labelled_all_the_same():
    _, tags = placed([Box(x=0, y=0, width=4, height=4)], canvas=(5, 5))
    assert (tags["0"].x, tags["0"].y) == (0, 0)
