"""The mail surface: each mailbox of the settings is a target."""

from __future__ import annotations

import hashlib
import secrets as random_texts
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.config import fits, own_folder, write_own
from callboard.messages import Coverage, Look, Observation, Probe, Target, TargetKind
from callboard.surfaces._need import Need
from callboard.surfaces._surface import UNKNOWN, Server, SurfaceTool, ToolError, collect
from callboard.surfaces.documents import Workspace
from callboard.surfaces.documents.mail import parse_address
from callboard.surfaces.mailbox._mail_account import MailAccount
from callboard.surfaces.mailbox._mail_folder import MessageReference
from callboard.surfaces.mailbox._reading_tools import ReadingTools
from callboard.surfaces.mailbox._send_tools import SENDING, SendTools
from callboard.surfaces.mailbox._sent_record import SendState, SentRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.config import MailSettings
    from callboard.messages import Foreseen, Intent
    from callboard.surfaces._stage import Stage

_FILE = "file:"
_MOST_FILES = 100
"""The most files of the workspace that an observation names."""
_PEOPLE = ("to", "cc", "bcc")


class MailSurface(Server):
    """The surface of mailboxes: SMTP to send, IMAP to read.

    Each call opens a connection of its own. A message is sent at most once: its Message-ID is made of the call's id,
    and after a crash the record of sent messages and the folder of sent messages tell whether it was sent. If they
    can't tell, a person is asked.

    Args:
        mail: The settings of each mailbox, by its name.
        workspace: The folder of attachments, that of the documents; None: nothing can be attached or saved.
        max_bytes: The largest file that is saved in the workspace, in bytes.
        secrets: The passwords and tokens, by name.
    """

    name = "mail"
    resource_kinds = ("mailto", "folder", "file")

    def __init__(
        self,
        mail: Mapping[str, MailSettings],
        *,
        workspace: Path | None = None,
        max_bytes: int = 50_000_000,
        secrets: Mapping[str, str] = {},
    ) -> None:
        self._workspace = Workspace(workspace, max_bytes) if workspace is not None else None
        self._accounts = {name: MailAccount(name, section, secrets) for name, section in mail.items()}
        self._sending = SendTools(self._account, self._workspace)
        self._reading = ReadingTools(self._account, self._workspace)

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Require the files with certificates of authorities.

        Servers are asked when they are used.
        """
        sections: Mapping[str, MailSettings] = options.get("mail", {})
        return [
            Need(what=f"the file {section.ca} with certificates for the mailbox {name!r}", met=section.ca.is_file())
            for name, section in sections.items()
            if section.ca is not None
        ]

    def open(self, stage: Stage) -> None:
        """Read the records of sent messages."""
        for name, account in self._accounts.items():
            folder = stage.folder / name
            own_folder(folder)
            salt = folder / "salt"
            if not salt.exists():
                write_own(salt, random_texts.token_hex(16))
            account.salt = salt.read_text(encoding="ascii")
            account.record = SentRecord(folder / "sent.json")

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the tools that send, and those that read."""
        return (*collect(self._sending), *collect(self._reading))

    def targets(self) -> tuple[Target, ...]:
        """List the mailboxes."""
        return tuple(
            Target(
                id=name,
                name=f"mailbox {name}",
                kind=TargetKind.WINDOW,
                address=f"app/mail/{name}",
                server=self.name,
                binds={"mailbox": name},
            )
            for name in self._accounts
        )

    def observe(self, target: Target, look: Look = Look()) -> Observation:
        """Describe a mailbox by its settings; no server is asked."""
        account = self._account(target.id)
        imap, smtp = account.section.imap, account.section.smtp
        facts: dict[str, JsonValue] = {
            "from": account.section.sender,
            "can_send": smtp is not None,
            "can_read": imap is not None,
            "can_mark": imap is not None and imap.may_mark,
        }
        text = self._listed_files() if look.shown else ""
        notes: tuple[str, ...] = ()
        if len(text) > look.budget.text:
            text, notes = text[: look.budget.text], ("More files can be attached than are listed.",)
        return Observation(window=facts, text=text, fingerprint=self.fingerprint(target), notes=notes)

    def _listed_files(self) -> str:
        """List the files that can be attached."""
        if self._workspace is None:
            return ""
        try:
            names = list(self._workspace.files())
        except ToolError as error:
            return f"The files that can be attached are not listed: {error}"
        lines = names[:_MOST_FILES]
        if len(names) > _MOST_FILES:
            lines.append(f"… and {len(names) - _MOST_FILES} more")
        return "\n".join(("Files that can be attached:", *lines)) if lines else ""

    def fingerprint(self, target: Target) -> str:
        """Combine the mailbox's settings with the count of changed answers."""
        account = self._account(target.id)
        section = hashlib.sha256(repr(account.section).encode()).hexdigest()[:16]
        return f"{section}-{account.changes}"

    def busy(self, target: Target) -> bool:
        """Return False.

        Nothing of a server's work is visible, so no observation has to wait.
        """
        return False

    def recipient(self, target: Target, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Describe the recipients, the subject and the attachments of a call."""
        if tool not in SENDING:
            return ""
        try:
            return self._sending.draft(self._account(target.id), tool, arguments).described()
        except ToolError as error:
            return f"unknown recipients ({error})"

    def canonical(
        self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Return recipients as plain addresses in lower case."""
        plain: dict[str, JsonValue] = {
            name: [parse_address(str(text))[1].lower() for text in texts]
            for name, texts in arguments.items()
            if name in _PEOPLE and isinstance(texts, list)
        }
        return {**arguments, **plain}

    def resources(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Name the recipients, folders and files of a call.

        The forms are ``mailto:<address>``, ``folder:<mailbox>/<folder>`` and ``file:<path>``.
        """
        if target is None:
            return (UNKNOWN,)
        account = self._account(target.id)
        names: list[str] = []
        if tool in SENDING:
            mail = self._sending.draft(account, tool, arguments)
            names += [f"mailto:{address.lower()}" for address in mail.recipients]
        if "message" in arguments:
            names.append(f"folder:{account.name}/{MessageReference.parse(str(arguments['message'])).folder}")
        elif tool == "list_folders":
            names.append(f"folder:{account.name}")
        elif "folder" in arguments:
            names.append(f"folder:{account.name}/{arguments['folder']}")
        paths = arguments.get("attachments", [arguments["path"]] if "path" in arguments else [])
        if self._workspace is not None and isinstance(paths, list):
            names += [f"{_FILE}{self._workspace.resolve(str(path))}" for path in paths]
        return tuple(dict.fromkeys(names))

    def coverage(self, target: Target | None, pattern: str, resource: str) -> Coverage:
        """Compare a pattern with a resource.

        A file has two names, as a document has.
        """
        if self._workspace is None or not resource.startswith(_FILE):
            return super().coverage(target, pattern, resource)
        path = Path(resource.removeprefix(_FILE))
        names = (resource, f"{_FILE}{path.relative_to(self._workspace.folder).as_posix()}")
        return Coverage.ALL if any(fits(pattern, name) for name in names) else Coverage.NONE

    def probe(self, target: Target | None, intent: Intent, foreseen: Sequence[Foreseen], fingerprint: str) -> Probe:
        """Look for a sent message, or for a saved file."""
        if target is None:
            return Probe.UNKNOWN
        if intent.tool in SENDING:
            return self._probe_sent(self._account(target.id), intent.noted)
        if not foreseen or self._workspace is None:
            return Probe.UNKNOWN if foreseen else Probe.NOT_DONE
        mark = self._workspace.mark_of(foreseen[-1].path)
        if mark == foreseen[-1].after:
            return Probe.DONE
        return Probe.NOT_DONE if mark == foreseen[-1].before else Probe.UNKNOWN

    @staticmethod
    def _probe_sent(account: MailAccount, noted: Sequence[str]) -> Probe:
        """Return whether a message was sent.

        A call notes its message before the server may send it on. That a message is in no folder proves nothing.
        """
        if not noted:
            return Probe.NOT_DONE
        state = account.record.state(noted[-1]) if account.record is not None else None
        if state in {SendState.SENT, SendState.REFUSED}:
            return Probe.DONE if state == SendState.SENT else Probe.NOT_DONE
        try:
            return Probe.DONE if account.has_sent(noted[-1]) else Probe.UNKNOWN
        except ToolError:
            return Probe.UNKNOWN

    def _account(self, name: str) -> MailAccount:
        if name not in self._accounts:
            msg = f"there is no mailbox {name!r}"
            raise ToolError(msg)
        return self._accounts[name]
