"""Texts on their way through a device's shell."""

import base64
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.surfaces.android._key_tools import is_plain, typing

PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("\n\t%s '\"$`\\"), min_size=1)


def words_of(commands):
    """Have a real shell divide the commands into words."""
    script = "\n".join(f'set -- {command}; printf "%s\\0" "$#" "$@"' for command in commands)
    found = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")[:-1]  # noqa: S607
    while found:
        size = int(found[0])
        yield found[1 : size + 1]
        found = found[size + 1 :]


def typed(words):
    """Android's reading of the words: `%s` is a space in a text, as in its Input.java."""
    program, what, given_ = words
    assert program == "input"
    if what == "keyevent":
        return {"KEYCODE_ENTER": "\n", "KEYCODE_TAB": "\t"}[given_]
    letters, escaped, place = list(given_), False, 0
    while place < len(letters):
        if escaped:
            escaped = False
            if letters[place] == "s":
                letters[place] = " "
                del letters[place - 1]
                place -= 1
        if letters[place] == "%":
            escaped = True
        place += 1
    return "".join(letters)


@given(PLAIN)
def test_a_plain_text_arrives_as_it_is(text):
    assert is_plain(text)
    assert "".join(map(typed, words_of(typing(text)))) == text


@given(st.text(min_size=1).filter(lambda text: not is_plain(text)))
def test_any_other_text_is_sent_to_the_keyboard_alone(text):
    text = text.encode(errors="replace").decode()
    sent = list(words_of(typing(text))) if not is_plain(text) else []
    assert all(words[-2:] == ["-p", "com.android.adbkeyboard"] for words in sent)
    assert "".join(base64.b64decode(words[6]).decode() for words in sent) == (text if sent else "")


@pytest.mark.parametrize("text", ["a" * 95, "%s%s", "% s", "%", "%%s", "s%s"])
def test_long_texts_and_percent_signs_are_divided(text):
    assert "".join(map(typed, words_of(typing(text)))) == text
    assert all(len(command) < 100 for command in typing(text))
