"""Admission of the forms that a page sends after an action."""

from __future__ import annotations


class SentForms:
    """The forms of one tab."""

    def __init__(self) -> None:
        self.stopped: dict[tuple[str, str], frozenset[str]] = {}
        """The addresses of forms that were stopped, by the call that had acted before."""
        self._origins: frozenset[str] | None = frozenset()
        self._document = 0
        self._acted: tuple[str, str] | None = None
        self._sent: set[tuple[int, bool]] = set()
        """The forms that were sent: the number of the document, and whether a frame in it showed the answer."""

    def begin(self, origins: frozenset[str] | None, document: int, acted: tuple[str, str] | None) -> None:
        """Begin an action.

        Args:
            origins: The origins that forms may be sent to; None for all, any number of them.
            document: The number of the tab's document.
            acted: The tool and the arguments of the action; None if the page may send no form for it.
        """
        self._origins, self._document, self._acted = origins, document, acted
        self._sent.clear()

    def admit(self, origin: str, document: int, *, in_frame: bool) -> bool:
        """Return whether a form may be sent now.

        A document that came after the action may send on, as logins do. Each document may send one form, and one whose
        answer is shown in a frame, as some pages upload files. A redirect that repeats a form is not asked about: it
        belongs to the same one.
        """
        if self._origins is None:
            return True
        is_open = origin in self._origins or (bool(self._origins) and document != self._document)
        form = document, in_frame
        if not is_open or form in self._sent:
            return False
        self._sent.add(form)
        return True

    def stop(self, url: str) -> str:
        """Keep a stopped form, and return a note for the agent.

        A script may have sent it for the call that acted last.
        """
        note = f"The page tried to send a form to {url} by itself; it was stopped."
        if self._acted is None:
            return note
        self.stopped[self._acted] = self.stopped.get(self._acted, frozenset()) | {url}
        tool = self._acted[0]
        way = "set it otherwise, and then so again" if tool == "check" else "repeat it with the same arguments"
        box = " (A click on a box would change it back: set boxes with check.)" if tool == "click" else ""
        return f"{note} If the last {tool} was meant to send it, {way}: it is ruled on as such then.{box}"
