"""The phone's contacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from callboard.testing.phone._page import Dialog, Field, Page
from callboard.testing.phone._phone_applications import PhoneApplication
from callboard.testing.phone._phone_screen import PhoneScreen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from callboard.testing.phone._page import Act
    from callboard.testing.phone._phone import Phone


@dataclass
class Contact:
    """One entry of the contacts."""

    first: str
    last: str = ""
    phone: str = ""
    email: str = ""

    @property
    def name(self) -> str:
        """The whole name."""
        return f"{self.first} {self.last}".strip()


class Contacts(PhoneApplication):
    """People, with a form for new ones."""

    package, activity, label = "com.android.contacts", ".activities.PeopleActivity", "Contacts"
    activities: ClassVar[Mapping[str, str]] = {
        "form": ".activities.ContactEditorActivity",
        "person": ".activities.QuickContactActivity",
    }

    def __init__(self, phone: Phone, people: Iterable[Contact]) -> None:
        super().__init__(phone)
        self.people = list(people)
        """All entries; they are shown in the order of their names."""
        self.shown: Contact | None = None
        """The entry that a page shows, or that the form changes."""
        self.allowed = True
        """False if a person has refused the permission of `Phone.asks_permission`."""
        self._search = Field("search", "Search contacts")
        self._fields: list[Field] = []
        self._error = ""

    @property
    def listed(self) -> list[Contact]:
        """All entries, in the order of their names."""
        return sorted(self.people, key=lambda contact: contact.name.casefold())

    def screen(self) -> PhoneScreen:
        """Make its screen; a permission is asked for above it."""
        if not self.phone.asks_permission:
            return super().screen()
        dialog = Dialog(self.phone)
        dialog.message("Allow Contacts to access your contacts?", "permission_message")
        dialog.answers(
            [
                ("Allow", "permission_allow_button", lambda: self._answer(allowed=True)),
                ("Don’t allow", "permission_deny_button", lambda: self._answer(allowed=False)),  # noqa: RUF001 - Android's
            ]
        )
        package = "com.android.permissioncontroller"
        activity = f"{package}.permission.ui.GrantPermissionsActivity"
        return PhoneScreen(package, activity, dialog.views(), behind=self.views(), covers=True)

    def reset(self) -> None:
        """Show the list, and drop typed text."""
        super().reset()
        self._search.text = ""

    def _answer(self, *, allowed: bool) -> None:
        self.phone.asks_permission, self.allowed = False, allowed
        self.phone.done.append(("permission", str(allowed)))

    def _page_main(self) -> Page:
        page = self._made("Contacts", "list")
        if self.phone.asks_permission or not self.allowed:
            page.text("Contacts may not read your contacts.", "empty")
            return page
        page.action("Create contact", "add", self._create)
        page.action("Search", "menu_search", self._find)
        for contact in self.listed:
            page.entry(contact.name, self._opener(contact), self._deleter(contact))
        if not self.people:
            page.text("No contacts", "empty")
        return page

    def _page_search(self) -> Page:
        page = self._made("Search", "list")
        page.field(self._search)
        query = self._search.text.casefold()
        for contact in self.listed:
            if query in f"{contact.name} {contact.phone} {contact.email}".casefold():
                page.entry(contact.name, self._opener(contact), self._deleter(contact))
        return page

    def _page_form(self) -> Page:
        page = self._made("Edit contact" if self.shown else "Create contact")
        page.action("Save", "save", self._save)
        for field in self._fields:
            page.field(field)
        if self._error:
            page.text(self._error, "error")
        return page

    def _page_person(self) -> Page:
        person = self.shown or Contact("")
        page = self._made(person.name)
        page.action("Edit", "edit", self._edit)
        for text, id_ in ((person.phone, "phone"), (person.email, "email")):
            if text:
                page.text(text, id_)
        if person.phone:
            page.button("Call", "call", lambda: self.phone.done.append(("call", person.phone)))
            page.button("Message", "message", lambda: self.phone.done.append(("message", person.phone)))
        page.button("Delete", "delete", self._deleter(person))
        return page

    def _opener(self, person: Contact) -> Act:
        def tap() -> None:
            self.shown = person
            self.go("person")

        return tap

    def _deleter(self, person: Contact) -> Act:
        def hold() -> None:
            self.shown, self.dialog = person, self._ask_to_delete

        return hold

    def _find(self) -> None:
        self._search.text = ""
        self.go("search")
        self.phone.focus(self._search)

    def _create(self) -> None:
        self.shown = None
        self._edit()

    def _edit(self) -> None:
        person = self.shown or Contact("")
        self._error = ""
        self._fields = [
            Field("first_name", "First name", person.first),
            Field("last_name", "Last name", person.last),
            Field("phone", "Phone", person.phone),
            Field("email", "Email", person.email),
        ]
        self.go("form")

    def _save(self) -> None:
        contact = Contact(*(field.text for field in self._fields))
        if not contact.name:
            self._error = "Enter a name"
            return
        if self.shown is not None:
            self.people[self.people.index(self.shown)] = contact
            self.back()
        else:
            self.people.append(contact)
        self.shown = contact
        self.pages[1:] = ["person"]
        self.phone.focus(None)

    def _ask_to_delete(self) -> Dialog:
        name = self.shown.name if self.shown else ""
        return Dialog(self.phone, f"Delete {name}?").answers(
            [("Delete", "android:id/button1", self._delete), ("Cancel", "android:id/button2", self._close)]
        )

    def _delete(self) -> None:
        if self.shown is not None:
            self.people.remove(self.shown)
            self.shown = None
        self.reset()
