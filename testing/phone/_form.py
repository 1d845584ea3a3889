"""A form with one of each kind of control."""

from __future__ import annotations

import calendar
import datetime as dt
from typing import TYPE_CHECKING

from callboard.testing.phone._page import Dialog, Field, Page
from callboard.testing.phone._phone_applications import PhoneApplication
from callboard.testing.phone._phone_screen import View

if TYPE_CHECKING:
    from callboard.testing.phone._page import Act
    from callboard.testing.phone._phone import Phone

_DECEMBER = 12


class Form(PhoneApplication):
    """One of each kind of control."""

    package, label = "org.callboard.form", "Form"
    SIZES = ("small", "large")
    COLOURS = ("red", "green", "blue")

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.name = Field("name", "Name (required)")
        self.password = Field("password", "Password", password=True)
        self.news, self.terms, self.size, self.colour, self.error = False, False, "small", "red", ""
        self.volume = 0.5
        """The place of the slider, from 0 to 1."""
        self.date = dt.date(2026, 3, 1)
        self.sent: list[dict[str, object]] = []
        """The submitted values, the oldest first."""
        self._month = self.date

    def _page_main(self) -> Page:
        page = self._made("Form")
        page.field(self.name)
        page.field(self.password)
        page.check("CheckBox", "Newsletter", "newsletter", lambda: self._turn("news"), checked=self.news)
        page.check("CheckBox", "Terms accepted (required)", "terms", lambda: self._turn("terms"), checked=self.terms)
        for size in self.SIZES:
            page.check("RadioButton", size, f"size_{size}", self._setter("size", size), checked=self.size == size)
        page.drop_down("Colour", "colour", self.colour, lambda: setattr(self, "dialog", self._colours))
        page.slider("Volume", "volume", self.volume, lambda share: setattr(self, "volume", round(share, 2)))
        page.entry(f"Date: {self.date.isoformat()}", self._pick).id = "date"
        if self.error:
            page.text(self.error, "error")
        page.button("Submit", "submit", self._submit)
        return page

    def _page_sent(self) -> Page:
        page = self._made("Form")
        page.text("Thank you", "sent")
        return page

    def _turn(self, name: str) -> None:
        setattr(self, name, not getattr(self, name))

    def _setter(self, name: str, value: object) -> Act:
        def tap() -> None:
            setattr(self, name, value)
            self._close()

        return tap

    def _colours(self) -> Dialog:
        dialog = Dialog(self.phone)
        for name in self.COLOURS:
            dialog.choice(name, self._setter("colour", name), checked=name == self.colour)
        return dialog

    def _pick(self) -> None:
        self._month, self.dialog = self.date, self._days

    def _days(self) -> Dialog:
        dialog, month = Dialog(self.phone), self._month
        title = View("TextView", text=f"{month:%B %Y}", id="date_picker_header")
        back = View("ImageButton", text="", id="prev", description="Previous month", tap=lambda: self._turn_to(-1))
        forward = View("ImageButton", text="", id="next", description="Next month", tap=lambda: self._turn_to(1))
        dialog.row([title])
        dialog.row([back, forward])
        height = 110 if self.phone.height > self.phone.width else 70
        for week in calendar.monthcalendar(month.year, month.month):
            dialog.row([self._day(month.replace(day=day)) if day else View("Space") for day in week], height)
        return dialog.answers([("OK", "android:id/button1", self._set), ("Cancel", "android:id/button2", self._close)])

    def _day(self, day: dt.date) -> View:
        view = View("View", text=str(day.day), description=f"{day:%d %B %Y}", checked=day == self._month)
        view.tap = lambda: setattr(self, "_month", day)
        return view

    def _turn_to(self, months: int) -> None:
        year, month = divmod(self._month.year * _DECEMBER + self._month.month - 1 + months, _DECEMBER)
        self._month = dt.date(year, month + 1, min(self._month.day, calendar.monthrange(year, month + 1)[1]))

    def _set(self) -> None:
        self.date = self._month
        self._close()

    def _submit(self) -> None:
        self.error = "Enter a name" if not self.name.text else "" if self.terms else "Accept the terms"
        if self.error:
            return
        values = {"name": self.name.text, "password": self.password.text, "news": self.news, "terms": self.terms}
        more = {"size": self.size, "colour": self.colour, "volume": self.volume, "date": self.date.isoformat()}
        self.sent.append({**values, **more})
        self.go("sent")
