"""Tables of pages, as data."""

from __future__ import annotations

import pytest

from callboard.surfaces import ToolError

HEAD = "<tr><th>Item<th>Price"
TABLES = {
    "merged cells repeat": (
        f"<table>{HEAD}<tr><td rowspan=0>Cup<td>1<tr><td>2<tr><td>3</table>",
        [["Cup", "1"], ["Cup", "2"], ["Cup", "3"]],
    ),
    "hidden rows and cells are left out": (
        f"<table>{HEAD}<tr style='display: none'><td>Ignore<td>0<tr><td>Cup<td>1<td hidden>secret</table>",
        [["Cup", "1"]],
    ),
    "a table in a cell is its text": (
        f"<table>{HEAD}<tr><td>Cup<td><table><tr><td>1<td>2</table></table>",
        [["Cup", "1\t2"]],
    ),
    "fields have values": (
        (f"<table>{HEAD}<tr><td><input value=Cup><td>EUR <select><option>1<option selected>2</select>"
        "<tr><td><input type=checkbox checked><td><img alt='three'></table>"),
        [["Cup", "EUR 2"], ["true", "three"]],
    ),
    "fields stand in the text that is shown": (
        (f"<table>{HEAD}<tr><td><div>12</div><div>34</div><input type=checkbox><td><b>1</b>2<i hidden>3</i>"
        "<p style='display: none'><input value=4></p><input type=hidden value=5><input value=6 style='opacity: 0'>"
        "<tr><td>Total: <select><option selected>EUR<option>USD</select> <textarea>a\nb</textarea>net"
        "<td style='visibility: hidden'>x<tr><td><span style='display: contents'>1<br>2<!-- 3 --><input type=radio>"
        "</span><td><span style='visibility: hidden'>7<input value=8><b style='visibility: visible'>9</b></table>"),
        [["12 34 false", "12 6"], ["Total: EUR a\nb net", ""], ["1 2 false", "9"]],
    ),
    "a password is no data": (
        f"<table>{HEAD}<tr><td>Login<td><input type=password value=secret></table>",
        [["Login", ""]],
    ),
    "empty rows before the header are left out": (
        f"<table><tr><td><td>{HEAD}<tr><td>Cup<td>1</table>",
        [["Cup", "1"]],
    ),
    "parts with roles are a table": (
        ("<div role=table><div role=row><b role=columnheader>Item</b><b role=columnheader>Price</b></div>"
        "<div role=row><i role=cell>Cup</i><i role=cell>1</i></div></div>"),
        [["Cup", "1"]],
    ),
}  # fmt: skip


def extracted(visit, shop, page):
    """Extract the first table of a page."""
    shop.pages["/table"] = page
    tab = visit(f"{shop.url}/table")
    table = next(control for control in tab.look().controls if control.kind == "table")
    return tab.do("extract_table", table)


@pytest.mark.parametrize(("page", "rows"), TABLES.values(), ids=TABLES.keys())
def test_a_table_is_read_as_it_is_shown(visit, shop, page, rows):
    assert extracted(visit, shop, page) == {"header": ["Item", "Price"], "rows": rows}


def test_a_page_that_changes_its_scripts_gets_an_error(visit, shop):
    page = f"<table>{HEAD}<tr><td>Cup<td>1</table><script>Element.prototype.querySelectorAll = () => 1</script>"
    with pytest.raises(ToolError):
        extracted(visit, shop, page)
