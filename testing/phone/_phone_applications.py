"""The phone's applications: each shows pages and dialogs, and reacts to touches."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

from callboard.testing.phone._page import Field, Page
from callboard.testing.phone._phone_screen import PhoneScreen, Scroll, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.testing.phone._page import Act, Dialog
    from callboard.testing.phone._phone import Phone


class PhoneApplication:
    """One application.

    A page is a method of the name ``_page_<name>`` that makes it.

    Args:
        phone: The phone.
    """

    package = ""
    label = ""
    activity = ".MainActivity"
    """The activity that starts it, and shows its first page."""
    activities: ClassVar[Mapping[str, str]] = {}
    """The activities that show other pages, by page."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.pages = ["main"]
        """The pages from the first one to the current one."""
        self.dialog: Callable[[], Dialog] | None = None
        """Makes the dialog above the page."""
        self._scrolls = defaultdict[str, Scroll](Scroll)

    @property
    def page(self) -> str:
        """The page that is shown."""
        return self.pages[-1]

    @property
    def front(self) -> str:
        """The activity that shows the page."""
        return self.activities.get(self.page, self.activity)

    def screen(self) -> PhoneScreen:
        """Make its screen."""
        page = self.views()
        if self.dialog is not None:
            return PhoneScreen(self.package, self.front, self.dialog().views(), behind=page)
        return PhoneScreen(self.package, self.front, page)

    def views(self) -> list[View]:
        """Make its page."""
        return self.current().views()

    def current(self) -> Page:
        """Make its page, which can still be added to."""
        page: Page = getattr(self, f"_page_{self.page}")()
        return page

    def fields(self) -> list[Field]:
        """Return the text fields of its page."""
        return self.current().fields if self.dialog is None else []

    def go(self, page: str) -> None:
        """Show another page."""
        self.pages.append(page)
        self._scrolls.pop(page, None)
        self._settle()

    def back(self) -> bool:
        """Close the dialog, or return to the page before.

        False if that is another application's.
        """
        if self.dialog is not None:
            self.dialog = None
            return True
        if len(self.pages) == 1:
            return False
        self.pages.pop()
        self._settle()
        return True

    def reset(self) -> None:
        """Show the first page: the application was ended."""
        self.pages = ["main"]
        self._scrolls.clear()
        self._settle()

    def open(self, url: str) -> None:
        """Show an address."""

    def _settle(self) -> None:
        self.dialog = None
        self.phone.focus(None)

    def _made(self, title: str, rows: str = "", up: Act | None = None) -> Page:
        """Begin a page."""
        leave = up or (self.phone.back if len(self.pages) > 1 else None)
        return Page(self.phone, title, self._scrolls[self.page], rows, leave)

    def _close(self) -> None:
        self.dialog = None


class Home(PhoneApplication):
    """The applications, as icons, and the running ones, as a list."""

    package, activity, label = "com.android.launcher3", ".uioverrides.QuickstepLauncher", "Home"
    activities: ClassVar[Mapping[str, str]] = {"recents": "com.android.quickstep.RecentsActivity"}

    def fields(self) -> list[Field]:
        """Return no text fields: its page has none."""
        return []

    def views(self) -> list[View]:
        """Make its page."""
        if self.page == "recents":
            return self.current().views()
        step = self.phone.width // 3
        views = [View("TextView", (0, 100, self.phone.width, 260), "Sunday, 1 March", "date")]
        for index, app in enumerate(other_app for other_app in self.phone.apps.values() if other_app is not self):
            x, y = index % 3 * step, 300 + index // 3 * 320
            box = (x + 40, y, x + step - 40, y + 260)
            views.append(View("Button", box, app.label, "icon", tap=self._starter(app)))
        return views

    def _page_recents(self) -> Page:
        page = self._made("Recent apps", "overview_panel")
        for app in reversed(self.phone.running):
            page.entry(app.label, self._starter(app))
        if not self.phone.running:
            page.text("No recent items", "empty_view")
        return page

    def _starter(self, app: PhoneApplication) -> Act:
        return lambda: self.phone.start(app.package)


class SettingsApplication(PhoneApplication):
    """Switches, which are the phone's settings, and a list that scrolls."""

    package, label = "com.android.settings", "Settings"
    activities: ClassVar[Mapping[str, str]] = {
        "about": ".Settings$MyDeviceInfoActivity",
        "apps": ".Settings$ManageAppsActivity",
    }
    SWITCHES: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        "Wi-Fi": ("wifi", "global/wifi_on", "1", "0"),
        "Bluetooth": ("bluetooth", "global/bluetooth_on", "1", "0"),
        "Aeroplane mode": ("aeroplane_mode", "global/airplane_mode_on", "1", "0"),
        "Dark theme": ("dark_theme", "secure/ui_night_mode", "2", "1"),
        "Location": ("location", "secure/location_mode", "3", "0"),
        "Auto-rotate": ("autorotate", "system/accelerometer_rotation", "1", "0"),
    }
    """Each switch: its id, the setting, and the setting's values when it is on and off."""
    ENTRIES = (
        "Connected devices",
        "Notifications",
        "Battery",
        "Storage",
        "Sound and vibration",
        "Display",
        "Wallpaper",
        "Accessibility",
        "Security",
        "Privacy",
        "Accounts",
        "Languages and input",
        "Date and time",
        "Backup",
        "System update",
    )

    def _page_main(self) -> Page:
        page = self._made("Settings", "list")
        for name, (id_, key, on, _) in self.SWITCHES.items():
            page.check("Switch", name, id_, self._turner(name), checked=self.phone.settings.get(key) == on)
        page.entry("Apps", lambda: self.go("apps"))
        for name in self.ENTRIES:
            page.entry(name, None)
        page.entry("About phone", lambda: self.go("about"))
        return page

    def _page_apps(self) -> Page:
        page = self._made("Apps", "list")
        for package in sorted(self.phone.packages):
            page.entry(package, None)
        return page

    def _page_about(self) -> Page:
        page = self._made("About phone", "list")
        for name, value in (("Model", self.phone.model), ("Android version", str(self.phone.android))):
            page.entry(f"{name}: {value}", None)
        return page

    def _turner(self, name: str) -> Act:
        _, key, on, off = self.SWITCHES[name]

        def turn() -> None:
            self.phone.settings[key] = off if self.phone.settings.get(key) == on else on

        return turn


class Browser(PhoneApplication):
    """Shows the address that it was opened with."""

    package, label = "org.callboard.browser", "Browser"

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.url = "about:blank"
        self.history: list[str] = []
        """The addresses that it was opened with, the oldest first."""

    def open(self, url: str) -> None:
        """Show an address."""
        self.url = url
        self.history.append(url)

    def _page_main(self) -> Page:
        page = self._made("Browser")
        page.text(self.url, "url")
        page.text("A page that stands for the one at this address.", "content")
        return page


class Dialler(PhoneApplication):
    """Calls numbers."""

    package, label = "com.android.dialer", "Phone"
    KEYS: ClassVar[Mapping[str, str]] = {key: {"*": "star", "#": "pound"}.get(key, key) for key in "123456789*0#"}

    def __init__(self, phone: Phone) -> None:
        super().__init__(phone)
        self.number = Field("digits", "Number")

    def open(self, url: str) -> None:
        """Take the number of an address."""
        self.number.text = url.partition(":")[2]

    def _page_main(self) -> Page:
        page = self._made("Phone")
        page.field(self.number)
        page.keys([(key, f"key_{name}", self._presser(key)) for key, name in self.KEYS.items()])
        page.button("Call", "dial", self.call, enabled=bool(self.number.text))
        return page

    def call(self) -> None:
        """Call the number."""
        if self.number.text:
            self.phone.done.append(("call", self.number.text))

    def _presser(self, key: str) -> Act:
        def press() -> None:
            self.number.text += key
            self.phone.cursor = len(self.number.text)

        return press
