"""The keyboard and the pointer after a program that was killed while it used them."""

import pytest
from Xlib import X
from Xlib.ext import xtest

from callboard.surfaces.desktop._input import XKeyboard
from callboard.surfaces.desktop._xscreen import XScreen

FOREIGN = "漢字€ß"


@pytest.fixture
def screen(surface):
    opened = XScreen(surface._require_desktop().session.environment["DISPLAY"])
    yield opened
    opened.close()


@pytest.fixture
def killed(screen):
    """Give the keys and buttons that a program has left down, and the keys that it has put characters on."""
    display = XScreen(screen.display.get_display_name())
    keyboard = XKeyboard(display)
    keyboard.type(FOREIGN, lambda symbol: keyboard.press([symbol]))
    control = keyboard._key(keyboard._modifier("ctrl"))[0]
    for what, detail in ((X.KeyPress, control), (X.ButtonPress, 1)):
        xtest.fake_input(display.display, what, detail)
    display.display.sync()
    display.display.close()
    return keyboard


def test_keys_and_buttons_that_were_left_down_are_released(screen, killed):
    keyboard = XKeyboard(screen)
    assert keyboard.held() == "Ctrl"
    assert screen.root.query_pointer().mask & X.Button1Mask
    keyboard.release_all()
    assert keyboard.held() == ""
    assert not screen.root.query_pointer().mask & X.Button1Mask
    assert not any(screen.display.query_keymap())


def test_keys_with_characters_that_were_left_on_them_are_free(screen, killed):
    keyboard = XKeyboard(screen)
    keyboard.release_all()
    assert {*killed._mapped.values()} <= {*keyboard._spare}
    assert keyboard._keys.items() == {**keyboard._keys, **killed._keys}.items()


def test_a_key_that_is_down_does_not_repeat(screen):
    assert screen.display.get_keyboard_control().global_auto_repeat == X.AutoRepeatModeOff
