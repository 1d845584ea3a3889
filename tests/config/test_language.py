"""Texts of a language: translations, their forms for numbers, and translations that are refused."""

from __future__ import annotations

import threading

import pytest

from callboard.config import ENGLISH, Language, speaking, term, text
from callboard.messages import SettingsError

POLISH = "n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"


def test_text_has_its_values_and_the_form_of_its_number():
    assert text("subtask_assigned", number=1, request="{x}") == "is assigned subtask 1: {x}"
    assert [text("step_count", count=count) for count in (0, 1, 1234)] == ["0 steps", "1 step", "1,234 steps"]


def test_translation_has_its_own_forms_and_english_where_it_lacks_a_text():
    polish = Language({"plural": POLISH, "step_count": ["{count} krok", "{count} kroki", "{count} kroków"]})
    with speaking(polish):
        assert [text("step_count", count=count) for count in (1, 3, 5, 22)] == [
            "1 krok",
            "3 kroki",
            "5 kroków",
            "22 kroki",
        ]
        assert text("goes_on") == "goes on"
    assert text("step_count", count=3) == "3 steps"


def test_language_holds_on_its_thread_alone():
    words = []
    with speaking(Language({"goes_on": "geht weiter"})):
        thread = threading.Thread(target=lambda: words.append(text("goes_on")))
        thread.start()
        thread.join()
        words.append(text("goes_on"))
    assert words == ["goes on", "geht weiter"]


def test_value_without_a_word_is_shown_as_it_is():
    assert (term("outcome", "timed_out"), term("outcome", "another_one")) == ("timed out", "another_one")


@pytest.mark.parametrize(
    ("translation", "reason"),
    [
        ({"goes_onn": "x"}, "no text 'goes_onn'; did you mean 'goes_on'"),
        ({"goes_on": 3}, "goes_on: is neither a text nor a list"),
        ({"step_count": []}, "step_count: is neither a text nor a list"),
        ({"step_count": ["one step", "{count} steps"]}, "step_count: has other values than the English text: {count}"),
        ({"goes_on": "{reason}"}, "has other values than the English text: none"),
        ({"said": "{comment.__class__}"}, "has other values than the English text: {comment}"),
        ({"said": "{comment"}, "said: expected '}'"),
        ({"said": "{comment:{width}}"}, "said: formats a value in another way"),
        ({"seconds": "{seconds:d} s"}, "seconds: formats a value in another way"),
        ({"plural": "import os"}, "plural: "),
        ({"plural": "n/0"}, "plural: "),
    ],
)
def test_translation_that_can_not_be_shown_is_refused(translation, reason):
    with pytest.raises(SettingsError) as refused:
        Language(translation)
    assert reason in str(refused.value)


def test_translation_is_read_from_a_file(tmp_path):
    file = tmp_path / "german.yaml"
    file.write_text("language: de\ntasks: Aufgaben\nstep_count: ['{count} Schritt', '{count} Schritte']\n")
    with speaking(Language.load(file)):
        assert (text("language"), text("tasks"), text("step_count", count=2)) == ("de", "Aufgaben", "2 Schritte")


@pytest.mark.parametrize(
    ("content", "reason"), [("- tasks", "is no mapping"), ("tasks: [", "line 1"), (None, "can't be read")]
)
def test_file_that_is_no_translation_is_refused(tmp_path, content, reason):
    file = tmp_path / "german.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsError) as refused:
        Language.load(file)
    assert f"{file}: " in str(refused.value)
    assert reason in str(refused.value)


def test_english_is_a_complete_translation_of_itself():
    assert Language(ENGLISH)["tasks"] == "Tasks"
