"""The phone's notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from callboard.testing.phone._page import Dialog, Field, Page
from callboard.testing.phone._phone_applications import PhoneApplication

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.testing.phone._page import Act
    from callboard.testing.phone._phone import Phone
    from callboard.testing.phone._phone_screen import View


@dataclass(eq=False)
class NotebookEntry:
    """One note."""

    text: str = ""

    @property
    def title(self) -> str:
        """Its first line."""
        return self.text.partition("\n")[0] or "(empty)"


class Notes(PhoneApplication):
    """Texts of several lines.

    A long touch deletes one, and a drag moves one.
    """

    package, label = "org.callboard.notes", "Notes"
    activities: ClassVar[Mapping[str, str]] = {"note": ".EditActivity"}

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.notes = [NotebookEntry("Shopping\nmilk, bread")]
        """All notes, in the order in which they are listed."""
        self._field = Field("note", "Note", lines=5)
        self._open: NotebookEntry | None = None
        self._entries: list[View] = []

    def _page_main(self) -> Page:
        page = self._made("Notes", "notes")
        page.action("New note", "new", lambda: self._edit(None))
        self._entries = [
            page.entry(note.title, self._opener(note), self._deleter(note), self._mover(note)) for note in self.notes
        ]
        if not self.notes:
            page.text("No notes", "empty")
        return page

    def _page_note(self) -> Page:
        page = self._made("Note")
        page.action("Done", "done", self._done)
        page.field(self._field)
        return page

    def _opener(self, note: NotebookEntry) -> Act:
        return lambda: self._edit(note)

    def _edit(self, note: NotebookEntry | None) -> None:
        self._open, self._field.text = note, note.text if note else ""
        self.go("note")

    def _done(self) -> None:
        if self._open is None:
            self._open = NotebookEntry()
            self.notes.append(self._open)
        self._open.text = self._field.text
        self.reset()

    def _deleter(self, note: NotebookEntry) -> Act:
        def delete() -> None:
            self.notes.remove(note)
            self._close()

        def ask() -> Dialog:
            return Dialog(self.phone, f"Delete “{note.title}”?").answers(
                [("Delete", "android:id/button1", delete), ("Cancel", "android:id/button2", self._close)]
            )

        return lambda: setattr(self, "dialog", ask)

    def _mover(self, note: NotebookEntry) -> Callable[[View], None]:
        def drop(target: View) -> None:
            if target in self._entries:
                target_index = self._entries.index(target)
                self.notes.remove(note)
                self.notes.insert(target_index, note)

        return drop
