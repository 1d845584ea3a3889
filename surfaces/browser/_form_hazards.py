"""Hazards of presses on a page: forms, logins, payments, downloads, words.

The facts are looked up in the document itself, by XPath in a world that the page's scripts can't change.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from callboard.messages import Hazard
from callboard.surfaces._hazard_words import of_answer, of_beginning, of_name
from callboard.surfaces.browser._page_addresses import base_url, document_url, origin_of, resolved
from callboard.surfaces.browser._page_snapshot import BUTTONS, DIALOGS, ENTERED
from callboard.surfaces.browser._playwright_errors import as_tool_error

if TYPE_CHECKING:
    from collections.abc import Collection

    from playwright.async_api import Frame, Locator, Page

    from callboard.surfaces.browser._page_snapshot import PageNode

_AZ, _SMALL = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"


def _small(attribute: str) -> str:
    return f"translate({attribute}, '{_AZ}', '{_SMALL}')"


_TYPE, _METHOD, _FORM_METHOD = _small("@type"), _small("@method"), _small("@formmethod")


def _is(*names: str) -> str:
    """Match elements by their names.

    In documents of XML they are in a namespace.
    """
    return "(" + " or ".join(f"local-name()='{name}'" for name in names) + ")"


_SUBMITS = (
    f"(({_is('button')} and not({_TYPE}='button' or {_TYPE}='reset')) or "
    f"({_is('input')} and ({_TYPE}='submit' or {_TYPE}='image')))"
)
"""The condition for a button that submits. Source: HTML, "Attributes for form submission"."""
_LABEL = f"ancestor-or-self::*[{_is('label')}][1]"
_CONTROLS = (
    f"({_is('button', 'meter', 'output', 'progress', 'select', 'textarea')} or "
    f"({_is('input')} and not({_TYPE}='hidden')))"
)
LABELED = f"(id({_LABEL}/@for) | {_LABEL}[not(@for)]/descendant::*[{_CONTROLS}][1])"
"""The control that a press on its label activates. Source: HTML, "The label element"."""
_LABELED_BUTTON = f"{LABELED}[{_is('button')} or {_SUBMITS} or ({_is('input')} and {_TYPE}='button')]"
_SUBMITTER = f"(ancestor-or-self::*[{_SUBMITS}][1] | {LABELED}[{_SUBMITS}])"
_OWN_FORM = f"(ancestor::*[{_is('form')}][1] | id(@form))"
_AUTOCOMPLETE = _small("@autocomplete")
_PLAIN_NAME = f"translate(concat(@name, ' ', @id), '{_AZ}-_', '{_SMALL}')"
_PAYS = (
    f"({_is('input', 'select', 'textarea')} and (starts-with({_AUTOCOMPLETE}, 'cc-') or "
    f"contains({_AUTOCOMPLETE}, ' cc-') or contains({_PLAIN_NAME}, 'cardnumber') or "
    f"contains({_PLAIN_NAME}, 'ccnumber')))"
)
_KNOWS_PASSWORD = f"({_is('input')} and {_TYPE}='password')"
_ENTER_FIELD = f"ancestor-or-self::*[{_is('input', 'select')}][1]"
"""The field in which Enter submits its form."""
_DEFAULT = f"descendant::*[{_is('button', 'input')} and {_FORM_METHOD}='post']"


def _has(field: str) -> str:
    """Match forms with a field, which may stand elsewhere in the document."""
    return f"descendant::*[{field}] or @id = //*[{field}]/@form"


def _facts(submitter: str, own: str) -> dict[Hazard, str]:
    """Return the XPath that finds each hazard of submitting."""
    return {
        Hazard.SENDS: f"{submitter}[{own}]",
        Hazard.SPENDS: f"{submitter}[{_OWN_FORM}[{_has(_PAYS)}]]",
        Hazard.LOGS_IN: f"{submitter}[{_OWN_FORM}[{_has(_KNOWS_PASSWORD)}]]",
    }


_PRESSED = _facts(_SUBMITTER, f"{_FORM_METHOD}='post' or (not(@formmethod) and {_OWN_FORM}[{_METHOD}='post'])") | {
    Hazard.DOWNLOADS: f"ancestor-or-self::*[{_is('a')} and @href][1][@download]"
}
_ENTER = _facts(_ENTER_FIELD, f"{_OWN_FORM}[{_METHOD}='post' or {_DEFAULT}]")
_NAVIGATES = f"[{_OWN_FORM}[@action and not(@onsubmit)]]"
"""The condition for a form that only asks for another page. One without an address is likely to be sent by a script."""


@dataclass(frozen=True)
class PressFacts:
    """The facts about a press that the policy rules on."""

    hazards: frozenset[Hazard] = frozenset()
    addresses: frozenset[str] = frozenset()
    """The addresses of the form that it submits; an address that is not certain is empty."""

    @property
    def origins(self) -> frozenset[str]:
        """The origins that the form may be sent to."""
        return frozenset(map(origin_of, self.addresses))

    def __or__(self, other: PressFacts) -> PressFacts:
        """Return the facts of both presses."""
        return PressFacts(self.hazards | other.hazards, self.addresses | other.addresses)


async def has_card_field(page: Page) -> bool:
    """Return whether a page's document has a field for a card."""
    return bool(await page.locator(f"xpath=//*[{_PAYS}]").count())


async def of_press(page: Page, node: PageNode, *, enters: bool = False) -> PressFacts:
    """Return the hazards of a press, and the addresses of its form.

    Args:
        page: The page.
        node: The part.
        enters: Whether Enter is pressed in it, not the mouse.

    Raises:
        ToolError: If the page does not answer.
    """
    is_field = enters and node.role in ENTERED
    paths, submitter = (_ENTER, _ENTER_FIELD) if is_field else (_PRESSED, _SUBMITTER)
    element = page.locator(node.selector)
    with as_tool_error():
        counts = await asyncio.gather(
            *(element.locator(f"xpath={path}").count() for path in (*paths.values(), submitter + _NAVIGATES))
        )
        addresses, is_foreign = await _form_addresses(element, submitter, enters=is_field)
        button = _default_button(element) if is_field else element.locator(f"xpath={_LABELED_BUTTON}")
        words = await _words_of_button(button) | (set() if is_field else of_words(node))
    *found_counts, navigates = counts
    hazards = {hazard for hazard, count in zip(paths, found_counts, strict=True) if count}
    if is_foreign:
        hazards.add(Hazard.SENDS)
    if navigates and Hazard.SENDS not in hazards:
        words.discard(Hazard.SENDS)
    return PressFacts(frozenset(hazards | words), addresses)


def _default_button(element: Locator) -> Locator:
    """Return the buttons of a field's form: Enter presses the first one."""
    form = element.locator(f"xpath={_ENTER_FIELD}").locator(f"xpath={_OWN_FORM}")
    return form.locator(f"xpath=descendant::*[{_SUBMITS}]")


async def _words_of_button(buttons: Locator) -> set[Hazard]:
    """Return the hazards of the words on a button.

    It is pressed by way of another part.
    """
    if not await buttons.count():
        return set()
    button = buttons.first
    texts = [await button.text_content(), *[await button.get_attribute(name) for name in ("aria-label", "value")]]
    return set[Hazard]().union(*(of_name(" ".join(text.split())) for text in texts if text)) - {Hazard.OVERWRITES}


async def _form_addresses(element: Locator, submitter: str, *, enters: bool) -> tuple[frozenset[str], bool]:
    """Return the addresses of a form, and whether any is foreign."""
    pressed = element.locator(f"xpath={submitter}")
    forms = pressed.locator(f"xpath={_OWN_FORM}")
    handles = await forms.element_handles()
    if not handles:
        return frozenset(), False
    actions = [await handle.get_attribute("action") for handle in handles]
    buttons = forms.locator("xpath=descendant::*[@formaction]") if enters else pressed
    button_actions = [await handle.get_attribute("formaction") for handle in await buttons.element_handles()]
    if enters:
        actions += button_actions
    elif any(action is not None for action in button_actions):
        actions = button_actions
    frame = await handles[0].owner_frame()
    return (frozenset([""]), True) if frame is None else await _resolved(frame, actions)


async def _resolved(frame: Frame, actions: Collection[str | None]) -> tuple[frozenset[str], bool]:
    base, page_url = await base_url(frame), document_url(frame)
    addresses = frozenset(resolved(base, action) if action else page_url for action in actions)
    web_addresses = [url for url in addresses if urlsplit(url).scheme != "javascript"]
    return addresses, any(origin_of(url) != origin_of(page_url) for url in web_addresses)


def of_words(node: PageNode) -> set[Hazard]:
    """Return the hazards that the words of a part indicate."""
    if node.role not in BUTTONS and not node.is_clickable:
        return set()
    texts = dict.fromkeys(filter(None, (node.name, node.words())))  # the label, and the text that is seen
    if node.role == "link":
        return set().union(*map(of_beginning, texts))
    hazards = set[Hazard]().union(*map(of_name, texts)) - {Hazard.OVERWRITES}
    dialog = next((ancestor for ancestor in node.ancestors() if ancestor.role in DIALOGS), None)
    if dialog is not None:
        question = [part.text or part.name for part in (dialog, *dialog.below()) if part.role not in BUTTONS]
        hazards = hazards.union(*(of_answer(text, question) for text in texts))
    return hazards
