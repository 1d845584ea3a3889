"""Addresses of links, frames and forms, as policies see them."""

from __future__ import annotations

import itertools
import json
import random
import re
from types import SimpleNamespace

import pytest

from callboard.messages import Hazard
from callboard.surfaces import ToolError
from callboard.surfaces.browser._form_hazards import PressFacts
from callboard.surfaces.browser._navigation_tools import full_address
from callboard.surfaces.browser._page_addresses import origin_of, resolved

EVIL = "http://evil.example/x"
REFERENCES = {
    "": "http://shop.example/a/b",
    "x": "http://shop.example/a/x",
    "http:/x": "http://shop.example/x",
    "//evil.example/x": EVIL,
    "\\\\evil.example\\x": EVIL,
    "/\\evil.example/x": EVIL,
    " ht\ntp:///Evil.example:80/x": EVIL,
    "http://shop.example@evil.example/x": EVIL,
    "http://%65vil.example/x": EVIL,
    "https:evil.example": "https://evil.example",
    "javascript:void(0)": "javascript:void(0)",
    "http://0x7f.1/": "http://127.0.0.1/",
    "http://2130706433:80/": "http://127.0.0.1/",
    "http://[::FFFF:127.0.0.1]:8080/": "http://[::ffff:7f00:1]:8080/",
    "http://3dprinter/": "http://3dprinter/",
    "http://shop.example./": "http://shop.example/",
    "http://1%3A%3A1/": "",
    "http://b\u00fccher.example/": "",
    "http://[::1/": "",
}
"""References, each with its address on a page of the shop; empty where it is not certain."""


@pytest.mark.parametrize(("reference", "address"), REFERENCES.items())
def test_a_reference_is_resolved_as_browsers_do(reference, address):
    assert resolved("http://shop.example/a/b", reference) == address


LABELS = ("0", "1", "9", "a", "_", "01", "08", "0x", "0X7f", "0x7g", "256", "3d", "A-b", "%31", "", "\uff11", "K")
GROUPS = ("", "0", "00", "1", "FFFF", "10000", "1.2.3.4", "0001")


def spellings():
    """List hosts as pages may write them."""
    hosts = [".".join(labels) for count in (1, 2, 3) for labels in itertools.product(LABELS, repeat=count)]
    choose = random.Random(7).choices  # noqa: S311 - a seed
    hosts += [".".join(choose(LABELS[:11], k=count)) for count in (4, 5) for _ in range(500)]
    hosts += [f"[{':'.join(choose(GROUPS, k=count))}]" for count in range(2, 10) for _ in range(500)]
    return [f"{host}{end}" for host in dict.fromkeys(hosts) for end in ("", ".") if not (end and host.startswith("["))]


def test_each_spelling_of_a_host_is_the_name_that_the_browser_gives_it(visit, shop):
    hosts = spellings()
    tab = visit(f"{shop.url}/")
    names = tab.script(
        "() => HOSTS.map(host => { try { return new URL(`http://${host}/`).hostname } catch { return '' } })".replace(
            "HOSTS", json.dumps(hosts)
        )
    )
    ours = {host: resolved("", f"http://{host}/").removeprefix("http://").removesuffix("/") for host in hosts}
    truth = dict(zip(hosts, names, strict=True))
    assert {host: name for host, name in ours.items() if name not in {"", truth[host].removesuffix(".")}} == {}
    plain = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[.+\]")
    refused = {host for host, name in ours.items() if not name and plain.fullmatch(truth[host])}
    assert refused == set()
    for host, name in ours.items():
        if name:
            assert origin_of(f"http://{host}:80/x") == origin_of(f"http://{truth[host]}/") == f"http://{name}"


def test_a_spelling_of_a_host_is_named_as_the_host(touched, shop):
    port = shop.url.rpartition(":")[2]
    _, resources = touched(f"<form action='http://0177.0.0.01:{port}/x' method='post'><button>Go</button></form>")
    assert set(resources) == {f"url:{shop.url}/page", f"origin:{shop.url}", f"url:{shop.url}/x"}


@pytest.fixture
def touched(visit, shop, run):
    """Give the function that opens a page, and names the resources of a click on ``Go``."""

    def named(page):
        shop.pages["/page"] = page
        tab = visit(f"{shop.url}/page")
        go = tab.control("Go")
        return tab, run(tab.surface.resources(tab.target, "click", {"control_id": go.id}))

    return named


def test_rules_and_people_see_the_form_that_was_judged(visit, shop, run):
    shop.pages["/page"] = f"<form action='{EVIL}' method='post'><button>Go</button></form>"
    tab = visit(f"{shop.url}/page")
    call = tab.target, "click", {"control_id": tab.control("Go").id}
    run(tab.surface.hazards(*call, ()))
    tab.script("() => { document.forms[0].action = '/confirm' }")
    assert run(tab.surface.recipient(*call)) == "http://evil.example"
    assert f"url:{EVIL}" in run(tab.surface.resources(*call))


def test_a_link_is_relative_to_the_base_of_its_page(touched):
    _, resources = touched("<base href='http://evil.example/'><a href='/x'>Go</a>")
    assert f"url:{EVIL}" in resources
    assert "origin:http://evil.example" in resources


def test_a_part_in_a_frame_names_the_frame(touched, shop):
    shop.pages["/inner"] = "<button>Go</button>"
    _, resources = touched(f"<iframe src='{shop.other_url}/inner'></iframe>")
    assert f"origin:{shop.other_url}" in resources


FORMS = {
    "asks elsewhere": ("<form action='{}'><button>Go</button></form>", {"sends"}),
    "by its button": ("<form><button formaction='{}'>Go</button></form>", {"sends"}),
    "by a base": ("<base href='{}/'><form action='x'><button>Go</button></form>", {"sends"}),
    "from elsewhere": ("<form id='f' action='{}'></form><button form='f'>Go</button>", {"sends"}),
    "unclear": ("<form action='http://b\u00fccher.example/'><button>Go</button></form>", {"sends"}),
    "a script": ("<form action='javascript:void(0)'><button>Go</button></form>", set()),
    "its own site": ("<form action='/x'><button>Go</button></form>", set()),
}


@pytest.mark.parametrize(("page", "hazards"), FORMS.values(), ids=FORMS.keys())
def test_a_form_for_another_origin_sends(touched, shop, page, hazards):
    tab, resources = touched(page.format(shop.other_url))
    assert tab.hazards("click", "Go") == hazards
    if "{}" in page:
        assert f"origin:{shop.other_url}" in resources
    assert ("unknown" in resources) == ("b\u00fccher" in page)


def test_enter_in_a_form_for_another_origin_sends(touched, shop):
    tab, _ = touched(f"<form action='{shop.other_url}'><input aria-label='Code'><button>Go</button></form>")
    assert tab.hazards("press", "Code", keys="Enter") == {"sends"}


def test_a_form_whose_address_changes_after_the_ruling_is_not_sent(touched, shop):
    tab, _ = touched("<form method='post' action='/confirm'><input name='x'><button>Go</button></form>")
    count, button = len(shop.orders), tab.control("Go")
    assert tab.hazards("click", button) == {"sends"}
    tab.script(f"() => {{ document.forms[0].action = '{shop.other_url}/confirm' }}")
    with pytest.raises(ToolError, match=f"now it sends to {shop.other_url}"):
        tab.do("click", button)
    tab.script(f"() => {{ const form = document.forms[0]; form.action = '/confirm'; "
               f"form.onsubmit = () => {{ form.action = '{shop.other_url}/confirm' }} }}")  # fmt: skip
    assert tab.hazards("click", button) == {"sends"}
    tab.do("click", button)
    while not (notes := tab.look().notes):
        pass
    assert f"tried to send a form to {shop.other_url}" in notes[0]
    assert len(shop.orders) == count


def test_an_answer_to_a_form_may_send_on(touched, shop):
    form = f"<form method='post' action='{shop.other_url}/confirm'></form>"
    shop.pages["/next"] = f"{form}<script>document.forms[0].submit()</script>"
    tab, _ = touched("<form action='/next'><button formmethod='post'>Go</button></form>")
    assert tab.hazards("click", "Go") == {"sends"}
    tab.do("click", "Go")
    tab.wait_for(text="Thank you")
    tab.script("() => { location = '/next' }")
    tab.wait_for(address=f"{shop.other_url}/*", text="Thank you")


def test_dragging_onto_a_bin_deletes(touched):
    tab, _ = touched("<button draggable='true'>Go</button> <button>Delete</button>")
    assert tab.hazards("drag", "Go", to=tab.control("Delete").id) == {"deletes"}


def test_dragging_names_the_page_that_a_control_is_dropped_on(touched, shop, run):
    shop.pages["/inner"] = "<a href='https://bin.example/'>Delete</a>"
    tab, _ = touched(f"<button draggable='true'>Go</button><iframe src='{shop.other_url}/inner'></iframe>")
    arguments = {"control_id": tab.control("Go").id, "to": tab.control("Delete").id}
    resources = run(tab.surface.resources(tab.target, "drag", arguments))
    assert {f"origin:{shop.other_url}", "origin:https://bin.example"}.issubset(resources)


FIELD = "<input aria-label=Field>"
TAKES_OVER = """<iframe src="{}" onload="const part = frames[0].frames[0]; part.location = 'about:blank';
    setInterval(() => {{ try {{ part.document.body.innerHTML ||= '<input aria-label=Field>' }} catch {{}} }}, 50)">"""
EMPTY = {
    "a frame of its page": ("/own", "<iframe></iframe><script>frames[0].document.body.innerHTML = `{}`</script>", True),
    "a text of its page": ("/outer", "<iframe srcdoc='{}'></iframe>", True),
    "one that a page further out may have put there": ("/takes", "<iframe src='/x'></iframe>", False),
}


@pytest.mark.parametrize(("path", "text", "is_known"), EMPTY.values(), ids=EMPTY.keys())
def test_a_secret_is_for_no_document_of_an_uncertain_origin(visit, shop, run, monkeypatch, path, text, is_known):
    shop.pages |= {"/own": text.format(FIELD), "/inner": text.format(FIELD)}
    shop.pages |= {"/outer": f"<iframe src='{shop.url}/inner'>", "/takes": TAKES_OVER.format(f"{shop.url}/inner")}
    tab, origins = visit(f"{shop.url if path == '/own' else shop.other_url}{path}"), []
    field = tab.control("Field")
    resources = run(tab.surface.resources(tab.target, "fill", {"control_id": field.id}))
    assert ("unknown" in resources) != is_known
    stub = SimpleNamespace(id="", check_origin=origins.append)
    monkeypatch.setattr("callboard.surfaces.browser._page_actions.current_call", lambda: stub)
    tab.do("fill", field, text="x")
    assert origins == [shop.url if is_known else ""]


def test_facts_of_presses_are_united():
    first = PressFacts(frozenset({Hazard.SENDS}), frozenset({EVIL}))
    assert first | PressFacts(addresses=frozenset({""})) == PressFacts(first.hazards, frozenset({"", EVIL}))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (r"http://evil.example\.shop.example/", "http://evil.example/.shop.example/"),
        ("https://%65vil.example", "https://evil.example/"),
        ("HTTPS://A.example:443", "https://a.example/"),
        ("localhost:8080/x", "http://localhost:8080/x"),
    ],
)
def test_an_address_is_opened_as_the_rules_read_it(text, address):
    assert full_address(text) == address


@pytest.mark.parametrize(
    "text", ["http://[bad", "https://münchen.example", "https://", "http://a b.example", "ftp://a.example"]
)
def test_an_address_without_a_certain_host_is_not_opened(text):
    with pytest.raises(ToolError, match="is not the address of a page"):
        full_address(text)
