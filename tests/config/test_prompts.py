"""The prompts: shipped, and each replaceable."""

from __future__ import annotations

import pytest

from callboard.config import Prompts, Settings, load_prompts
from callboard.messages import AgentKind, SettingsError


def test_every_kind_of_agent_has_a_prompt():
    prompts = load_prompts(Settings())
    assert prompts.keys() == set(AgentKind)
    assert [kind for kind, text in prompts.items() if not text.strip()] == []


@pytest.mark.parametrize("kind", AgentKind)
def test_a_prompt_is_replaced_by_a_file_of_the_operators(kind, tmp_path):
    (tmp_path / "mine.md").write_text("Be brief. Zähle.", encoding="utf-8")
    replaced = load_prompts(Settings.load(base=tmp_path, prompts=Prompts(**{kind.value: "mine.md"})))
    shipped = load_prompts(Settings())
    assert replaced == {**shipped, kind: "Be brief. Zähle."}


def test_a_replacement_that_is_missing_is_a_matter_of_the_settings(tmp_path):
    with pytest.raises(SettingsError, match=r"prompts\.host: .*nowhere\.md can't be read"):
        load_prompts(Settings.load(base=tmp_path, prompts=Prompts(host="nowhere.md")))


def test_prompt_file_that_is_not_text_is_a_settings_error(tmp_path):
    (tmp_path / "mine.md").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"prompts\.app: .* can't be read"):
        load_prompts(Settings.load(base=tmp_path, prompts=Prompts(app="mine.md")))
