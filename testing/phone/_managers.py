"""The programs of Android's managers of activities and packages."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from callboard.testing.phone._fault import argument, fail, thrown
from callboard.testing.phone._phone_applications import Browser, Dialler, Home, PhoneApplication

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.testing.phone._phone import Phone

_ADB_KEYBOARD = "com.android.adbkeyboard"
_SCHEMES = {"http": Browser.package, "https": Browser.package, "tel": Dialler.package}
_ACTIONS = {
    "android.settings.SETTINGS": "com.android.settings",
    "android.intent.action.DIAL": Dialler.package,
}
_PRIVATE = {"tel", "sip", "sms", "smsto", "mailto"}
_ACTIVITY = "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false"
_WITH_VALUE = {"-e": 2, "--es": 2, "--ez": 2, "--ei": 2, "--el": 2, "--esn": 1, "-f": 1, "--user": 1, "-t": 1, "-R": 1}
"""The ignored options of an intent, with the number of their values."""
_KEPT = {"-a": "action", "-d": "data", "-n": "component", "-p": "package"}


@dataclass
class PhoneIntent:
    """An intent, as the arguments of `am` describe it."""

    action: str = ""
    data: str = ""
    component: str = ""
    package: str = ""
    categories: list[str] = field(default_factory=list)
    extras: dict[str, str] = field(default_factory=dict)
    flags: str = ""
    waits: bool = False
    stops: bool = False

    @classmethod
    def read(cls, words: list[str]) -> PhoneIntent:
        """Read it, as ``Intent.parseCommandArgs`` does."""
        intent, index = cls(), 0
        while index < len(words):
            word = words[index]
            value = words[index + 1] if index + 1 < len(words) else ""
            if word in _KEPT:
                setattr(intent, _KEPT[word], argument(words, index + 1, word))
            elif word == "-c":
                intent.categories.append(value)
            elif word in {"-e", "--es"}:
                intent.extras[value] = argument(words, index + 2, word)
            elif word == "-W":
                intent.waits = True
            elif word == "-S":
                intent.stops = True
            elif not word.startswith("-"):
                intent.take(word)
            index += 1 + (1 if word in _KEPT or word == "-c" else _WITH_VALUE.get(word, 0))
        return intent

    def take(self, word: str) -> None:
        """Take an argument without an option.

        It is an address, a component or a package.
        """
        if ":" in word:
            self.data = word
        elif "/" in word:
            self.component = word
        else:
            self.package = word

    def __str__(self) -> str:
        """Format it, as ``Intent.toString`` does, which shows little of an address."""
        parts = (
            ("act", self.action),
            ("cat", f"[{','.join(self.categories)}]" if self.categories else ""),
            ("dat", _safe(self.data)),
            ("flg", self.flags),
            ("pkg", self.package),
            ("cmp", _short(self.component)),
        )
        texts = [f"{name}={value}" for name, value in parts if value]
        return f"Intent {{ {' '.join((*texts, *(['(has extras)'] if self.extras else [])))} }}"


class Managers:
    """Runs `am`, `pm`, `cmd` and `monkey`.

    Args:
        phone: The phone that they ask.
        place: Gives the file that one of the device's paths stands for.
    """

    def __init__(self, phone: Phone, local_path: Callable[[str], Path | None]) -> None:
        self._phone = phone
        self._local_path = local_path

    def am(self, words: list[str]) -> str:
        """Run `am`: start and end applications, and type by broadcast.

        Source: ``ActivityManagerShellCommand``.
        """
        what, arguments = (words[0], words[1:]) if words else ("", [])
        if what in {"start", "start-activity"}:
            return self._start(PhoneIntent.read(arguments))
        if what == "broadcast":
            return self._broadcast(PhoneIntent.read(arguments))
        if what == "force-stop":
            package = argument(arguments, len(arguments) - 1 if arguments else 0, what)
            if package in self._phone.apps:
                self._phone.end(package)
            return ""
        return fail(out=f"Unknown command: {what}")

    def _start(self, intent: PhoneIntent) -> str:
        """Start an activity.

        Without `-W`, warnings and errors go to the error output.
        """
        phone = self._phone
        if not intent.component and not intent.action and not intent.data and not intent.package:
            thrown("start", "java.lang.IllegalArgumentException: No intent supplied")
        if intent.data and not intent.action:
            intent.action = "android.intent.action.VIEW"
        if intent.package and not intent.action and not intent.component:
            intent.action, intent.categories = "android.intent.action.MAIN", ["android.intent.category.LAUNCHER"]
        phone.intents.append(str(intent))
        report = f"Starting: {intent}"
        package = self._resolved(intent)
        if package is None:
            intent.flags = "0x10000000"
            missing = f"Error type 3\nError: Activity class {{{_long(intent.component)}}} does not exist."
            error = missing if intent.component else f"Error: Activity not started, unable to resolve {intent}"
            if intent.waits:
                fail(out=f"{report}\n{error}", code=1)
            fail(error, 1, report)
        if intent.stops:
            phone.end(package)
            report = f"Stopping: {package}\n{report}"
        warning, state = self._brought(package, intent)
        if intent.action == "android.intent.action.CALL":
            phone.done.append(("call", intent.data.partition(":")[2]))
        if warning and not intent.waits:
            fail(warning, 0, report)
        lines = [report, *([warning] if warning else [])]
        if intent.waits:
            lines += ["Status: ok", f"LaunchState: {state}", f"Activity: {component(phone.app)}"]
            lines += ["TotalTime: 100", "WaitTime: 102", "Complete"]
        return "".join(f"{line}\n" for line in lines)

    def _brought(self, package: str, intent: PhoneIntent) -> tuple[str, str]:
        """Bring an application to the front.

        Returns the printed warning and state.
        """
        phone = self._phone
        if phone.app.package == package and not intent.data:
            remark = "intent has been delivered to currently running top-most instance."
            return f"Warning: Activity not started, {remark}", "UNKNOWN (0)"
        runs = package in {application.package for application in phone.running}
        phone.start(package, intent.data)
        if runs and not intent.data:
            return "Warning: Activity not started, its current task has been brought to the front", "HOT"
        return "", "HOT" if runs else "COLD"

    def _resolved(self, intent: PhoneIntent) -> str | None:
        """Find the application of an intent."""
        phone = self._phone
        if intent.component:
            package, _, activity = _long(intent.component).partition("/")
            app = phone.apps.get(package)
            names = [app.activity, *app.activities.values()] if app is not None else []
            return package if f"{package}/{activity}" in {_long(f"{package}/{name}") for name in names} else None
        scheme = intent.data.partition(":")[0].casefold()
        if intent.action == "android.intent.action.MAIN":
            home = "android.intent.category.HOME" in intent.categories
            package = Home.package if home else intent.package
        else:
            package = _ACTIONS.get(intent.action) or _SCHEMES.get(scheme, "")
        allowed = not intent.package or intent.package == package
        return package if package in phone.apps and allowed else None

    def _broadcast(self, intent: PhoneIntent) -> str:
        """Broadcast an intent: ADBKeyBoard, if it is set, types its text."""
        phone = self._phone
        intent.flags = "0x400000"
        phone.intents.append(str(intent))
        hears = phone.ime.startswith(f"{_ADB_KEYBOARD}/") and intent.package in {"", _ADB_KEYBOARD}
        if hears and intent.action == "ADB_INPUT_B64":
            phone.inputs.append("broadcast")
            try:
                phone.type(base64.b64decode(intent.extras.get("msg", ""), validate=True).decode())
            except (binascii.Error, UnicodeDecodeError):
                phone.type("")  # the keyboard logs it, and types nothing
        elif hears and intent.action == "ADB_INPUT_TEXT":
            phone.inputs.append("broadcast")
            phone.type(intent.extras.get("msg", ""))
        elif hears and intent.action == "ADB_CLEAR_TEXT" and phone.field is not None:
            phone.inputs.append("clear")
            phone.erase(phone.cursor, len(phone.field.text))
        return f"Broadcasting: {intent}\nBroadcast completed: result=0\n"

    def monkey(self, words: list[str]) -> str:
        """Start a package, as the single event of `monkey` does."""
        packages = [words[index + 1] for index, word in enumerate(words[:-1]) if word == "-p"]
        if not packages or packages[0] not in self._phone.apps:
            fail("** No activities found to run, monkey aborted.", 252)
        self._phone.start(packages[0])
        return "Events injected: 1\n## Network stats: elapsed time=12ms (0ms mobile, 0ms wifi, 12ms not connected)\n"

    def cmd(self, words: list[str]) -> str:
        """Run a command of a service."""
        if words[:1] != ["package"]:
            fail(f"cmd: Can't find service: {words[0] if words else ''}", 20)
        return self.pm(words[1:])

    def pm(self, words: list[str]) -> str:
        """List, add and remove packages: ``PackageManagerShellCommand``."""
        what, arguments = (words[0], words[1:]) if words else ("", [])
        commands: dict[str, Callable[[list[str]], str]] = {
            "list": self._list,
            "path": self._path,
            "install": self._install,
            "uninstall": self._uninstall,
            "clear": self._clear,
            "query-activities": self._query,
            "resolve-activity": self._resolve,
        }
        if what not in commands:
            fail(out=f"Unknown command: {what}")
        return commands[what](arguments)

    def _list(self, words: list[str]) -> str:
        if words[:1] != ["packages"]:
            fail(f"Error: unknown list type '{words[0] if words else ''}'")
        names = [word for word in words[1:] if not word.startswith("-")]
        packages = [package for package in self._phone.packages if all(name in package for name in names)]
        if "-3" in words:
            packages = [package for package in packages if package in self._phone.installed]
        if "-s" in words:
            packages = [package for package in packages if package not in self._phone.installed]
        files = "-f" in words
        lines = (f"package:{f'{self._file(package)}=' if files else ''}{package}\n" for package in sorted(packages))
        return "".join(lines)

    def _file(self, package: str) -> str:
        name = package.rpartition(".")[2]
        return (
            f"/data/app/{package}-1/base.apk" if package in self._phone.installed else f"/system/app/{name}/{name}.apk"
        )

    def _path(self, words: list[str]) -> str:
        package = argument(words, len(words) - 1 if words else 0, "path")
        if package not in self._phone.packages:
            fail(code=1)
        return f"package:{self._file(package)}\n"

    def _install(self, words: list[str]) -> str:
        """Pretend to install a file: the package has the file's name."""
        file = argument(words, len(words) - 1 if words else 0, "install")
        path = self._local_path(file)
        if path is None or not path.is_file():
            fail(f"Error: Unable to open file: {file}\nConsider using a file under /data/local/tmp/", 1)
        package = PurePosixPath(file).stem
        if re.fullmatch(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)+", package) is None:
            fail(out="Failure [INSTALL_PARSE_FAILED_BAD_PACKAGE_NAME]", code=1)
        if package not in self._phone.packages:
            self._phone.others.append(package)
            self._phone.installed.append(package)
        return "Success\n"

    def _uninstall(self, words: list[str]) -> str:
        package = argument(words, len(words) - 1 if words else 0, "uninstall")
        if package not in self._phone.installed:
            fail(out="Failure [DELETE_FAILED_INTERNAL_ERROR]", code=1)
        self._phone.forget(package)
        return "Success\n"

    def _clear(self, words: list[str]) -> str:
        package = argument(words, len(words) - 1 if words else 0, "clear")
        if package not in self._phone.packages:
            fail(out="Failed", code=1)
        if package in self._phone.apps:
            self._phone.end(package)
        return "Success\n"

    def _query(self, words: list[str]) -> str:
        """List the activities that a person can start."""
        if "android.intent.category.LAUNCHER" not in words:
            return "No activities found\n"
        apps = [app for app in self._phone.apps.values() if not isinstance(app, Home)]
        if "--components" in words:
            return "".join(f"{component(app)}\n" for app in apps)
        lines = [f"  Activity #{number}:\n    {_ACTIVITY}\n    {component(app)}\n" for number, app in enumerate(apps)]
        return f"{len(apps)} activities found:\n{''.join(lines)}"

    def _resolve(self, words: list[str]) -> str:
        app = self._phone.apps.get(words[-1]) if words else None
        if app is None or isinstance(app, Home):
            return "No activity found\n"
        name = component(app)
        return f"{name}\n" if "--components" in words else f"{_ACTIVITY}\n{name}\n"


def component(app: PhoneApplication, activity: str = "") -> str:
    """Return the activity that starts an application, or another one of its."""
    return _short(f"{app.package}/{activity or app.activity}")


def _long(name: str) -> str:
    package, _, activity = name.partition("/")
    return f"{package}/{package}{activity}" if activity.startswith(".") else name


def _short(name: str) -> str:
    package, _, activity = name.partition("/")
    return f"{package}/{activity.removeprefix(package)}" if activity.startswith(f"{package}.") else name


def _safe(url: str) -> str:
    """Format an address as ``Uri.toSafeString`` does, without private parts."""
    scheme, _, remainder = url.partition(":")
    if scheme.casefold() in _PRIVATE:
        return f"{scheme}:{re.sub(r'[^-@.]', 'x', remainder)}"
    host = re.match(r"//([^/?#]*)", remainder)
    return f"{scheme}://{host[1].rpartition('@')[2]}/..." if host else url
