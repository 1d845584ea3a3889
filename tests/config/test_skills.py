"""Skills: folders that the settings name, read at the start, and refused in plain words."""

from __future__ import annotations

import os

import pytest

from callboard.config import Settings, load_skills
from callboard.config._skills import LONGEST_TEXT, LONGEST_TEXTS, MOST_ENTRIES, MOST_SKILLS
from callboard.messages import SettingsError


def skill(folder, front="", text="Do it well.", **files):
    folder.mkdir(parents=True, exist_ok=True)
    front = front or f"name: {folder.name}\ndescription: For {folder.name}."
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n\n{text}\n", encoding="utf-8")
    return folder


def loaded(base, *folders):
    return load_skills(Settings.load(base=base, skills=[str(folder) for folder in folders]))


def refused(base, *folders):
    with pytest.raises(SettingsError) as info:
        loaded(base, *folders)
    return str(info.value)


def test_skill_has_its_name_description_text_and_files(tmp_path):
    folder = skill(tmp_path / "house-style", "name: house-style\ndescription: |\n  Reports\n  of ours.\nlicense: MIT")
    (folder / "references").mkdir()
    (folder / "references" / "colours.md").write_bytes(b"\xef\xbb\xbfBlue.\r\nRed.")
    (found,) = loaded(tmp_path, "house-style")
    assert (found.skill.name, found.skill.description) == ("house-style", "Reports of ours.")
    assert found.skill.text == "Do it well."
    assert found.files == {"references/colours.md": "Blue.\nRed."}
    assert found.path == tmp_path / "house-style"


def test_no_skill_is_found_by_itself(tmp_path, monkeypatch):
    skill(tmp_path / "lurking")
    skill(tmp_path / "skills" / "lurking")
    monkeypatch.chdir(tmp_path)
    assert loaded(tmp_path) == ()
    assert refused(tmp_path, "skills").endswith("skills: it has no file SKILL.md")


def test_paths_start_from_the_settings_file(tmp_path):
    skill(tmp_path / "mine" / "notes")
    (tmp_path / "mine" / "callboard.yaml").write_text("skills: [notes]", encoding="utf-8")
    (found,) = load_skills(Settings.load(tmp_path / "mine" / "callboard.yaml"))
    assert found.skill.name == "notes"


def test_digest_changes_with_any_text_and_its_path(tmp_path):
    folder = skill(tmp_path / "notes")
    digests = [loaded(tmp_path, "notes")[0].digest]
    (folder / "a.md").write_text("one", encoding="utf-8")
    digests.append(loaded(tmp_path, "notes")[0].digest)
    (folder / "a.md").rename(folder / "b.md")
    digests.append(loaded(tmp_path, "notes")[0].digest)
    skill(folder, text="Do it otherwise.")
    digests.append(loaded(tmp_path, "notes")[0].digest)
    assert len(set(digests)) == len(digests)
    assert loaded(tmp_path, "notes")[0].digest == digests[-1]


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("description: x", "its front matter needs a text `name`"),
        ("name: notes", "its front matter needs a text `description`"),
        ("name: notes\ndescription: ''", "its front matter needs a text `description`"),
        ("name: notes\ndescription: 3", "its front matter needs a text `description`"),
        ("name: [notes]\ndescription: x", "its front matter needs a text `name`"),
        ('name: notes\ndescription: "a \\ud800"', r"description: it has a character that can't be shown: a \ud800"),
        ('name: notes\ndescription: "a \\e[31m"', r"description: it has a character that can't be shown: a \x1b[31m"),
        ("- a list", "its front matter needs a text `name`"),
        ("name: notes\ndescription: " + "x" * 1025, "description: it has 1,025 characters, and at most 1,024"),
        ("name: " + "n" * 65 + "\ndescription: x", "name: it has 65 characters, and at most 64"),
        ("name: Notes\ndescription: x", "name: 'Notes' must be of lower-case letters, digits and single hyphens"),
        ("name: no--tes\ndescription: x", "must be of lower-case letters"),
        ("name: -notes\ndescription: x", "must be of lower-case letters"),
        ("name: ../notes\ndescription: x", "must be of lower-case letters"),
        ("name: other\ndescription: x", "name: 'other' must be the name of its folder, 'notes'"),
        ("name: notes\nname: notes\ndescription: x", "the key 'name' appears twice"),
        ("name: [", "is not valid YAML"),
        ("name: !!python/object/apply:os.system [exit]", "is not valid YAML"),
    ],
)
def test_bad_front_matter_is_refused_with_the_path(tmp_path, front, reason):
    message = refused(tmp_path, skill(tmp_path / "notes", front).name)
    assert message.startswith(f"skills.0: {tmp_path / 'notes'}: SKILL.md: ")
    assert reason in message


@pytest.mark.parametrize("content", ["", "# Notes\n", "---\nname: notes\n", "\n---\nname: notes\n---\n"])
def test_file_without_a_front_matter_is_refused(tmp_path, content):
    folder = skill(tmp_path / "notes")
    (folder / "SKILL.md").write_text(content, encoding="utf-8")
    assert "does not begin with a front matter" in refused(tmp_path, "notes")


def test_skill_without_a_text_is_refused(tmp_path):
    assert "has no text" in refused(tmp_path, skill(tmp_path / "notes", text=" ").name)


def test_missing_folder_and_a_file_in_its_place_are_refused(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert refused(tmp_path, "nowhere") == f"skills.0: {tmp_path / 'nowhere'}: there is no such folder"
    assert refused(tmp_path, "file") == f"skills.0: {tmp_path / 'file'}: it is no folder"


def test_two_skills_of_one_name_are_refused(tmp_path):
    skill(tmp_path / "notes")
    skill(tmp_path / "more" / "notes")
    reason = f"{tmp_path / 'notes'} has the same name, 'notes'"
    assert refused(tmp_path, "notes", "more/notes").startswith(f"skills.1: {tmp_path / 'more' / 'notes'}: {reason}")


def test_too_many_skills_are_refused(tmp_path):
    assert refused(tmp_path, *["notes"] * (MOST_SKILLS + 1)).startswith(f"skills: there are {MOST_SKILLS + 1}")


@pytest.mark.parametrize("size", [LONGEST_TEXT + 1, 50_000_000])
def test_huge_skill_file_is_refused(tmp_path, size):
    folder = skill(tmp_path / "notes")
    with (folder / "SKILL.md").open("r+b") as file:
        file.truncate(size)
    assert "SKILL.md is too large: it has more than 32,000 characters" in refused(tmp_path, "notes")


def test_text_of_the_most_characters_is_read_whatever_its_bytes(tmp_path):
    folder = skill(tmp_path / "notes")
    (folder / "most.md").write_text("𝄞" * LONGEST_TEXT, encoding="utf-8")
    (found,) = loaded(tmp_path, "notes")
    assert len(found.files["most.md"]) == LONGEST_TEXT


def test_skill_of_too_many_texts_is_refused(tmp_path):
    folder = skill(tmp_path / "notes")
    for number in range(LONGEST_TEXTS // LONGEST_TEXT + 1):
        (folder / f"{number}.md").write_text("x" * LONGEST_TEXT, encoding="utf-8")
    assert "its texts have more than 500,000 characters" in refused(tmp_path, "notes")


def test_skill_of_too_many_files_is_refused(tmp_path):
    folder = skill(tmp_path / "notes")
    for number in range(MOST_ENTRIES):
        (folder / f"folder-{number}").mkdir()
    assert "more than 1,000 files and folders" in refused(tmp_path, "notes")


def test_other_files_that_can_not_be_read_do_not_stop_the_start(tmp_path):
    folder = skill(tmp_path / "notes")
    (folder / "large.csv").write_bytes(b"x" * 200_000)
    (folder / "picture.png").write_bytes(b"\x89PNG\xff")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret", encoding="utf-8")
    (folder / ".env").write_text("secret", encoding="utf-8")
    (found,) = loaded(tmp_path, "notes")
    assert found.files == {}
    assert found.unreadable == {
        "large.csv": "is too large: it has more than 32,000 characters",
        "picture.png": "is not UTF-8 text",
    }


@pytest.mark.skipif(os.name == "nt", reason="needs the right to create links")
def test_links_and_pipes_are_not_followed(tmp_path):
    folder = skill(tmp_path / "notes")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "password.txt").write_text("secret", encoding="utf-8")
    (folder / "file.md").symlink_to(tmp_path / "outside" / "password.txt")
    (folder / "folder").symlink_to(tmp_path / "outside")
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (found,) = loaded(tmp_path, "notes")
    assert found.files == {}
    link = "is a link: put the file itself into the folder"
    assert found.unreadable == {"circle": link, "file.md": link, "folder": link, "pipe": "is no regular file"}


@pytest.mark.skipif(os.name == "nt", reason="needs the right to create links")
def test_skill_file_that_is_a_link_is_refused(tmp_path):
    folder = skill(tmp_path / "notes")
    (folder / "SKILL.md").rename(tmp_path / "elsewhere.md")
    (folder / "SKILL.md").symlink_to(tmp_path / "elsewhere.md")
    assert refused(tmp_path, "notes").endswith("SKILL.md is a link: put the file itself into the folder")


@pytest.mark.parametrize("name", [b"\xff.md", b"a\n# Rules\n.md", b"\x1b[31m.md"])
def test_file_whose_name_can_not_be_shown_is_an_error(tmp_path, name):
    """The tool that reads a skill lists the names of its files."""
    folder = skill(tmp_path / "notes")
    with open(os.path.join(os.fsencode(folder), name), "wb"):  # noqa: PTH118, PTH123 - a name of bytes
        pass
    assert "has a character that can't be shown: rename the file" in refused(tmp_path, "notes")


def test_names_and_descriptions_may_have_joiners(tmp_path):
    folder = skill(tmp_path / "notes", 'name: notes\ndescription: "be\u200cauf"')
    (folder / "be\u200cauf.md").write_text("x", encoding="utf-8")
    assert "be\u200cauf.md" in loaded(tmp_path, "notes")[0].files
