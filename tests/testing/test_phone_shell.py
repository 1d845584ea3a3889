"""The phone's shell: a real one, with programs that answer as those of Android do."""

import asyncio
import base64
import contextlib
import shlex
import shutil
import signal
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.testing import Contact, Phone, plugged_in
from support import PATIENCE

ADB_KEYBOARD = "com.android.adbkeyboard/.AdbIME"
PROGRAMS = ("am", "pm", "cmd", "dumpsys", "settings", "ime", "input", "monkey", "wm", "uiautomator", "getprop")
WORDS = """
-n -a -d -p -W -S -c --es -f com.android.contacts com.android.settings/.MainActivity tel: http://x:y 5 -5 nan inf
start broadcast force-stop tap swipe text draganddrop keyevent 66 package list packages -3 path install uninstall clear
query-activities resolve-activity dump window policy get put delete system secure user_rotation set enable disable
default_input_method com.android.adbkeyboard/.AdbIME size user-rotation lock ADB_INPUT_B64 ADB_CLEAR_TEXT msg ''
"""
VIEW = "Intent { act=android.intent.action.VIEW dat=geo:1,2"


class Held:
    """A phone that is open."""

    def __init__(self, runner):
        self.runner = runner
        self.phone = Phone(contacts=[Contact(f"Person {number:02}") for number in range(30)])

    def run(self, command, data=b""):
        """Run a command, and give its exit code and both outputs."""
        code, out, err = self.runner.run(self.phone.run(command, data))
        return code, out.decode(), err.decode()

    def told(self, command):
        """Run a command that has to succeed, and give its output."""
        code, out, err = self.run(command)
        assert (code, err) == (0, "")
        return out


async def until(holds):
    """Wait for an effect of another process."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - another program's state
            await asyncio.sleep(0.005)


@pytest.fixture
def held():
    with asyncio.Runner() as runner:
        held = Held(runner)
        opened = held.phone.opened()
        runner.run(opened.__aenter__())
        yield held
        folder = held.phone.programs.parent
        runner.run(opened.__aexit__(None, None, None))
        assert not folder.exists()
        assert asyncio.all_tasks(runner.get_loop()) == set()


def test_a_dump_is_written_to_a_file_and_read_by_the_shell(held):
    code, out, err = held.run(
        "f=/data/local/tmp/x.xml; rm -f $f; uiautomator dump $f >&2; cat $f; rm -f $f; ls /data/local/tmp"
    )
    assert (code, out, err) == (0, held.phone.hierarchy(), "UI hierchary dumped to: /data/local/tmp/x.xml\n")
    assert held.told("uiautomator dump") == "UI hierchary dumped to: /sdcard/window_dump.xml\n"
    assert held.told("cat /sdcard/window_dump.xml") == held.phone.hierarchy()
    assert held.told("uiautomator dump /dev/tty") == f"{held.phone.hierarchy()}UI hierchary dumped to: /dev/tty\n"


def test_a_screen_that_moves_or_is_off_is_not_dumped(held):
    held.phone.moving = 2
    for _ in range(2):
        assert held.run("uiautomator dump /data/local/tmp/x") == (0, "", "ERROR: could not get idle state.\n")
    assert held.run("cat /data/local/tmp/x")[0] == 1
    held.phone.awake = False
    null = "ERROR: null root node returned by UiTestAutomationBridge.\n"
    assert held.run("uiautomator dump /data/local/tmp/x") == (0, "", null)


@pytest.mark.parametrize("file", ["/etc/x.xml", "/data/local/tmp/../x", "/sdcard/no/such/folder"])
def test_programs_write_in_the_phones_own_folders_alone(held, file):
    code, out, err = held.run(f"uiautomator dump {file}")
    assert (code, out) == (1, "")
    assert err == f"java.io.FileNotFoundException: {file}: open failed: EACCES (Permission denied)\n"


def test_a_picture_is_printed_or_written(held):
    async def work():
        code, out, _ = await held.phone.run("screencap -p")
        piped = await held.phone.run("screencap -p | cat")
        return code, out, piped[1]

    assert held.runner.run(work()) == (0, held.phone.picture(), held.phone.picture())
    assert held.told("screencap -p /sdcard/shot.png; head -c 4 /sdcard/shot.png | tail -c 3") == "PNG"


def test_touches_scroll_press_drag_and_are_kept(held):
    held.told("input tap 180 430")
    assert held.phone.app is held.phone.contacts
    held.told("input touchscreen swipe 500 1500 500 1000 300 && input swipe 500.4 400 500 400 600")
    assert "Delete Person" in held.phone.hierarchy()
    assert held.phone.inputs == ["tap 180 430", "swipe 500 1500 500 1000 300", "swipe 500.4 400 500 400 600"]
    held.phone.start("org.callboard.notes")
    held.phone.notes.notes.append(type(held.phone.notes.notes[0])("second"))
    held.told("input draganddrop 500 400 500 270 1000")
    assert [each.title for each in held.phone.notes.notes] == ["second", "Shopping"]


@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_plain_text_comes_through_a_real_shell(held, text):
    held.phone.start("org.callboard.form")
    form = held.phone.form
    form.name.text = ""
    held.phone.focus(form.name)
    held.told(f"input text {shlex.quote(text)} && true")
    assert form.name.text == text.replace("%s", " ")


def test_other_letters_are_refused_and_nothing_is_typed(held):
    held.phone.start("org.callboard.form")
    held.phone.focus(held.phone.form.name)
    code, out, err = held.run("input text 'naïve'")
    assert (code, out, held.phone.form.name.text) == (255, "", "")
    assert err.startswith(
        "\nException occurred while executing 'text':\n"
        "java.lang.NullPointerException: Attempt to get length of null array\n\tat com.android.server.input."
    )


def test_other_letters_are_typed_by_the_keyboard_for_it(held):
    held.phone.start("org.callboard.notes")
    held.told("input tap 1000 140")
    held.told("input tap 500 300")
    sent = base64.b64encode("Größe\n🙂".encode()).decode()
    broadcast = f"am broadcast -a ADB_INPUT_B64 --es msg {sent} -p com.android.adbkeyboard"
    answer = (
        "Broadcasting: Intent { act=ADB_INPUT_B64 flg=0x400000 pkg=com.android.adbkeyboard (has extras) }\n"
        "Broadcast completed: result=0\n"
    )
    assert held.told(broadcast) == answer
    assert held.phone.field.text == ""
    assert held.told(f"ime enable {ADB_KEYBOARD}; ime set {ADB_KEYBOARD}") == (
        f"Input method {ADB_KEYBOARD}: now enabled for user #0\nInput method {ADB_KEYBOARD} selected for user #0\n"
    )
    assert held.told(broadcast) == answer
    assert held.phone.field.text == "Größe\n🙂"
    held.told(
        "input keyevent KEYCODE_MOVE_HOME KEYCODE_FORWARD_DEL 123 67 && am broadcast -a ADB_INPUT_B64 --es msg '*'"
    )
    assert held.phone.field.text == "röße\n"
    held.told("am broadcast -a ADB_CLEAR_TEXT && am broadcast -a ADB_INPUT_TEXT --es msg 'plain text'")
    assert held.phone.field.text == "plain text"


def test_keys_move_between_fields_and_end_what_they_end(held):
    phone = held.phone
    phone.start("org.callboard.form")
    phone.focus(phone.form.name)
    held.told("input keyevent 29 KEYCODE_B DPAD_LEFT SPACE && input keyevent 66 && input text pw && input keyevent TAB")
    assert (phone.form.name.text, phone.form.password.text, phone.field) == ("a b", "pw", None)
    held.told("input keyevent --longpress --delay 3 BACK")
    assert phone.app.label == "Home"
    held.told("input keyevent 187")
    assert phone.app.front == "com.android.quickstep.RecentsActivity"
    held.told("input keyevent POWER")
    assert not phone.awake
    phone.locks = True
    held.told("input keyevent WAKEUP SLEEP 224 MENU HOME")
    assert (phone.awake, phone.locked, phone.app.page) == (True, False, "main")
    phone.start("com.android.dialer", "tel:12")
    held.told("input keyevent CALL VOLUME_UP")
    assert phone.done == [("call", "12")]


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("input fly", 0, "Unknown command: fly\n", ""),
        (
            "input tap 5",
            255,
            "",
            (
                "\nException occurred while executing 'tap':\n"
                'java.lang.IllegalArgumentException: Argument expected after "5"\n'
            ),
        ),
        (
            "input tap a b",
            255,
            "",
            (
                "\nException occurred while executing 'tap':\n"
                "java.lang.IllegalArgumentException: Error: Invalid arguments for command: tap\n"
            ),
        ),
        ("am fly", 255, "Unknown command: fly\n", ""),
        ("pm fly", 255, "Unknown command: fly\n", ""),
        ("cmd fly", 20, "", "cmd: Can't find service: fly\n"),
        ("dumpsys fly", 0, "", "Can't find service: fly\n"),
        ("settings get fly key", 255, "", "Invalid namespace 'fly'\n"),
        ("ime set a/.B", 255, "", "Unknown input method a/.B cannot be selected for user #0\n"),
        (f"ime set {ADB_KEYBOARD}", 255, "", f"Unknown input method {ADB_KEYBOARD} cannot be selected for user #0\n"),
        (
            "monkey -p com.x -c android.intent.category.LAUNCHER 1",
            252,
            "",
            "** No activities found to run, monkey aborted.\n",
        ),
        ("pm path com.x", 1, "", ""),
        ("pm uninstall com.x", 1, "Failure [DELETE_FAILED_INTERNAL_ERROR]\n", ""),
        ("wm size 1x1", 255, "", "Error: this phone's screen has one size and one density\n"),
        ("uiautomator events", 1, "", "Error: unsupported command: events\n"),
        (
            "am start -n com.x/.Y",
            1,
            "Starting: Intent { cmp=com.x/.Y }\n",
            "Error type 3\nError: Activity class {com.x/com.x.Y} does not exist.\n",
        ),
        (
            "am start -W -d geo:1,2",
            1,
            f"Starting: {VIEW} }}\nError: Activity not started, unable to resolve {VIEW} flg=0x10000000 }}\n",
            "",
        ),
    ],
)
def test_shell_errors_are_those_of_android(held, command, code, out, err):
    assert held.run(command) == (code, out, err)


def test_applications_start_with_the_output_of_android(held):
    settings = "com.android.settings/.MainActivity"
    ended = "TotalTime: 100\nWaitTime: 102\nComplete\n"
    shown = f"Starting: Intent {{ cmp={settings} }}\n"
    assert held.told(f"am start -n {settings}") == shown
    assert held.phone.app.package == "com.android.settings"
    delivered = "Warning: Activity not started, intent has been delivered to currently running top-most instance.\n"
    assert held.told(f"am start -W -n {settings}") == (
        f"{shown}{delivered}Status: ok\nLaunchState: UNKNOWN (0)\nActivity: {settings}\n{ended}"
    )
    assert held.told("am start -W -a android.intent.action.VIEW -d 'https://me:pw@example.org/a?b=c'") == (
        "Starting: Intent { act=android.intent.action.VIEW dat=https://example.org/... }\n"
        f"Status: ok\nLaunchState: COLD\nActivity: org.callboard.browser/.MainActivity\n{ended}"
    )
    assert held.phone.browser.url == "https://me:pw@example.org/a?b=c"
    brought = "Warning: Activity not started, its current task has been brought to the front\n"
    assert held.run("am start com.android.settings/com.android.settings.MainActivity") == (0, shown, brought)
    assert held.told("am start -a android.intent.action.DIAL -d tel:555-01") == (
        "Starting: Intent { act=android.intent.action.DIAL dat=tel:xxx-xx }\n"
    )
    assert held.phone.dialler.number.text == "555-01"
    held.told("am force-stop com.android.dialer; monkey -p org.callboard.form -c android.intent.category.LAUNCHER 1")
    assert [each.label for each in held.phone.running] == ["Browser", "Settings", "Form"]
    held.told("am start -a android.intent.action.MAIN -c android.intent.category.HOME")
    assert held.phone.app.label == "Home"
    assert len(held.phone.intents) == 6


def test_an_intent_has_options_an_address_and_extras(held):
    held.told("am start -S -W --es name value --user 0 -a android.intent.action.CALL tel:5-5; input keyevent HOME")
    assert held.phone.done == [("call", "5-5")]
    assert held.phone.intents == ["Intent { act=android.intent.action.CALL dat=tel:x-x (has extras) }"]
    assert "LaunchState: HOT" in held.told("am start -W com.android.dialer")
    held.phone.start("org.callboard.notes")
    held.phone.notes.go("note")
    notes = "org.callboard.notes/.MainActivity"
    assert held.told(f"am start -S {notes}") == (f"Stopping: org.callboard.notes\nStarting: Intent {{ cmp={notes} }}\n")
    assert held.phone.notes.page == "main"
    code, out, err = held.run("am start -W")
    assert (code, out) == (255, "")
    assert err.endswith("java.lang.IllegalArgumentException: No intent supplied\n")
    assert held.run("am start -p com.android.dialer -d https://example.org")[0] == 1


def test_packages_are_listed_installed_and_removed(held):
    first = "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false"
    launcher = "-c android.intent.category.LAUNCHER"
    assert held.told(f"cmd package resolve-activity --brief {launcher} com.android.contacts") == (
        f"{first}\ncom.android.contacts/.activities.PeopleActivity\n"
    )
    assert held.told("cmd package resolve-activity --brief com.x") == "No activity found\n"
    query = held.told(f"cmd package query-activities --brief -a android.intent.action.MAIN {launcher}").splitlines()
    contacts = ["  Activity #0:", f"    {first}", "    com.android.contacts/.activities.PeopleActivity"]
    assert query[:4] == ["6 activities found:", *contacts]
    assert held.told("pm list packages -3") == "package:com.android.adbkeyboard\n"
    assert held.run("pm install /data/local/tmp/com.x.apk")[0] == 1
    assert held.run("touch /sdcard/5.apk; pm install /sdcard/5.apk") == (
        1,
        "Failure [INSTALL_PARSE_FAILED_BAD_PACKAGE_NAME]\n",
        "",
    )
    assert held.told(f"cmd package query-activities --components {launcher}").endswith(
        "\ncom.android.dialer/.MainActivity\n"
    )
    assert (
        held.told(f"cmd package resolve-activity --components {launcher} com.android.contacts")
        == query[3].strip() + "\n"
    )
    held.phone.start("org.callboard.form")
    assert held.told("pm clear org.callboard.form; pm path org.callboard.form") == (
        "Success\npackage:/system/app/form/form.apk\n"
    )
    assert held.phone.app.label == "Home"
    assert held.run("pm clear com.x") == (1, "Failed\n", "")
    assert held.told("touch /data/local/tmp/com.x.apk; pm install -r /data/local/tmp/com.x.apk") == "Success\n"
    assert held.told("pm list packages -3 -f com.x") == "package:/data/app/com.x-1/base.apk=com.x\n"
    assert held.told("pm path com.x") == "package:/data/app/com.x-1/base.apk\n"
    assert held.told("pm uninstall com.android.adbkeyboard; pm uninstall com.x; pm list packages -3") == "Success\n" * 2
    assert held.told("ime list -s -a") == "com.android.inputmethod.latin/.LatinIME\n"
    assert "package:com.android.settings\n" in held.told("pm list packages -s")


def test_services_dump_the_state_of_the_phone(held):
    held.told("am start -n com.android.contacts/.activities.PeopleActivity")
    held.told("input tap 900 140; input tap 500 270")
    front = "u0 com.android.contacts/.activities.ContactEditorActivity"
    window = held.told("dumpsys window")
    assert f"  mCurrentFocus=Window{{1a2b3c {front}}}\n" in window
    assert f"  mFocusedApp=ActivityRecord{{4d5e6f {front} t7}}\n" in window
    assert "      showing=false\n" in held.told("dumpsys window policy")
    assert f"topResumedActivity=ActivityRecord{{4d5e6f {front} t7}}" in held.told("dumpsys activity activities")
    assert held.told("dumpsys input_method | grep mCur") == "  mCurMethodId=com.android.inputmethod.latin/.LatinIME\n"
    assert "mInputShown=true\n" in held.told("dumpsys input_method")
    assert held.told("dumpsys power | grep -m1 mWakefulness=") == "  mWakefulness=Awake\n"
    assert "  level: 100\n" in held.told("dumpsys battery")
    held.phone.locked, held.phone.awake = True, False
    assert "  mWakefulness=Asleep\n" in held.told("dumpsys power")
    assert "mCurrentFocus=Window{1a2b3c u0 NotificationShade}" in held.told("dumpsys window windows")
    assert {"showing=true", "mIsShowing=true", "screenState=SCREEN_STATE_OFF"} <= set(
        held.told("dumpsys window policy").split()
    )
    held.told("wm dismiss-keyguard")
    assert not held.phone.locked


def test_a_permission_has_the_focus(held):
    held.phone.asks_permission = True
    held.phone.start("com.android.contacts")
    assert "u0 com.android.permissioncontroller/.permission.ui.GrantPermissionsActivity}" in held.told("dumpsys window")


def test_settings_and_properties_are_given_and_set(held):
    assert held.told("settings get global wifi_on; settings get system none") == "1\nnull\n"
    assert held.told("settings put system user_rotation 1; settings get system user_rotation") == "1\n"
    assert (held.phone.rotation, held.phone.width) == (1, 2400)
    assert "cur=2400x1080" in held.told("dumpsys window displays")
    assert "SurfaceOrientation: 1" in held.told("dumpsys input")
    assert "rotation 1, density 420, state ON" in held.told("dumpsys display")
    held.told("wm user-rotation lock 0")
    assert held.told("wm size; wm density") == "Physical size: 1080x2400\nPhysical density: 420\n"
    assert held.told("settings delete global wifi_on; settings list global") == "Deleted 1 rows\n"
    assert held.told(f"settings put secure enabled_input_methods {ADB_KEYBOARD}; ime list -s") == f"{ADB_KEYBOARD}\n"
    held.told(f"settings put secure default_input_method {ADB_KEYBOARD}")
    assert held.told("settings get secure default_input_method") == f"{ADB_KEYBOARD}\n"
    assert held.told(f"ime disable {ADB_KEYBOARD}; ime reset; ime list") == (
        f"Input method {ADB_KEYBOARD}: now disabled for user #0\n"
        "Reset current and enabled IMEs for user #0\n  Newly selected: com.android.inputmethod.latin/.LatinIME\n"
        "com.android.inputmethod.latin/.LatinIME:\n  mId=com.android.inputmethod.latin/.LatinIME\n"
    )
    assert held.told("getprop ro.build.version.sdk; getprop none default") == "36\ndefault\n"
    assert "[ro.product.model]: [Stand-in]\n" in held.told("getprop")


def test_the_shell_is_a_real_one(held):
    assert held.run("cat; echo no >&2; exit 3", b"in") == (3, "in", "no\n")
    assert held.run("kill -9 $$")[0] == 137
    assert held.told("echo /data/local/tmpx, /my/sdcard") == "/data/local/tmpx, /my/sdcard\n"


@pytest.fixture(params=[signal.SIG_DFL, signal.SIG_IGN], ids=["", "under nohup"])
def _hang_ups(request):
    """Handle hang-ups by default, or ignore them; programs that this process starts do the same."""
    before = signal.signal(signal.SIGHUP, request.param)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_hang_ups")
def test_a_command_that_is_broken_off_is_hung_up_on_as_adbd_does(held):
    folder = held.phone.programs.parent / "sdcard"

    async def broken_off(command):
        running = asyncio.ensure_future(held.phone.run(command))
        await until((folder / "begun").exists)
        (folder / "begun").unlink()
        *_, started = vars(vars(held.phone)["_shell"])["_running"].values()
        await started  # it may run before its start is known, and is only hung up on after that
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        (folder / "go").touch()

    waiting = "echo > /sdcard/begun; until [ -e /sdcard/go ]; do sleep 0.01; done"

    async def work():
        await broken_off(f"sh -c '{waiting}; echo > /sdcard/child'; echo > /sdcard/shell")
        await until((folder / "child").exists)
        (folder / "go").unlink()
        await broken_off(f"trap '' HUP; {waiting}; echo > /sdcard/deaf")
        await until((folder / "deaf").exists)

    held.runner.run(work())
    assert not (folder / "shell").exists()


@pytest.mark.parametrize(
    "command",
    ["sleep 600 & echo $! > /sdcard/pid; wait", "trap '' HUP; setsid sleep 600 & echo $! > /sdcard/pid; wait"],
)
def test_processes_of_commands_end_with_the_phone(command):
    def runs(pid):
        program = Path("/proc", pid, "cmdline")
        return program.exists() and program.read_bytes().startswith(b"sleep")  # one that has ended has none

    async def work():
        async with Phone().opened() as phone:
            running = asyncio.ensure_future(phone.run(command))
            file = phone.programs.parent / "sdcard" / "pid"
            await until(lambda: file.exists() and runs(file.read_text(encoding="ascii").strip() or "none"))
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return file.read_text(encoding="ascii").strip()

    assert not runs(asyncio.run(work()))


def test_client_without_the_secret_gets_no_answer(held):
    program = (held.phone.programs / "input").read_text()
    port = int(program.split("/dev/tcp/127.0.0.1/")[1].split()[0])

    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"guessed\0input\x003\0tap\x00180\x00430\0")
        answer = await reader.read()
        writer.close()
        return answer

    assert held.runner.run(ask()) == b""
    assert held.phone.inputs == []
    assert (
        held.phone.programs.parent.stat().st_mode & 0o777,
        (held.phone.programs / "input").stat().st_mode & 0o777,
    ) == (
        0o700,
        0o700,
    )


def test_phone_that_is_not_open_or_open_twice_raises_an_error(held, monkeypatch):
    with pytest.raises(RuntimeError, match=r"not open: use `async with phone\.opened"):
        asyncio.run(Phone().run("true"))
    with pytest.raises(RuntimeError, match="the phone is open already"), plugged_in(held.phone):
        pass
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    with (
        pytest.raises(RuntimeError, match="can't be plugged in: the programs of the phone need bash"),
        plugged_in(Phone()),
    ):
        pass


def test_unplugged_phone_leaves_no_files_or_sockets():
    phone, other = Phone(), Phone()
    before = set(Path("/proc/self/fd").iterdir())
    with plugged_in(phone) as device, plugged_in(other) as second:
        folders = [phone.programs.parent, other.programs.parent]
        assert device.serial != second.serial
        socket.create_connection(("127.0.0.1", device.port)).close()
    assert not any(folder.exists() for folder in folders)
    assert not [each for each in threading.enumerate() if each.name == "callboard-phone"]
    assert set(Path("/proc/self/fd").iterdir()) == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", device.port))


def test_silent_program_does_not_delay_the_end():
    async def work():
        phone = Phone()
        async with phone.opened():
            program = (phone.programs / "am").read_text(encoding="ascii")
            port = int(program.split("/dev/tcp/127.0.0.1/")[1].split()[0])
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(work()) == []


@given(name=st.sampled_from(PROGRAMS), words=st.lists(st.sampled_from(WORDS.split()), max_size=6))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_program_answers_whatever_it_is_given(held, name, words):
    code, _, err = held.run(" ".join((name, *words)))
    assert code in {0, 1, 20, 252, 255}
    assert "Traceback" not in err
