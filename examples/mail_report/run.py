"""Send a report by mail, with a person's approval: ``python examples/mail_report/run.py``.

The server that takes the mail is on this machine, and a function replaces the language model. The person who approves
is this program: it prints the reason that a person would see.
"""

from __future__ import annotations

import email
import socketserver
import sys
import tempfile
import threading
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from callboard import EventName, FunctionModel, ModelRequest, Settings, Supervisor, Task, TaskResult

REPORT = "region,sales\nNorth,120\nSouth,80\n"


class MailServer(socketserver.ThreadingTCPServer):
    """A server that takes any mail, and keeps it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), MailSession)
        self.mails: list[bytes] = []


class MailSession(socketserver.StreamRequestHandler):
    """One connection: it answers each command of SMTP."""

    def handle(self) -> None:
        """Answer commands until the client goes."""
        self.wfile.write(b"220 ready\r\n")
        for line in self.rfile:
            if line.upper().startswith(b"DATA"):
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                cast("MailServer", self.server).mails.append(b"".join(part.removeprefix(b".") for part in lines))
            self.wfile.write(b"250 done\r\n")


def app(request: ModelRequest) -> dict[str, Any]:
    """Send the report, then finish."""
    results = [result for record in request.memory for result in record.results]
    if not results:
        message = {
            "to": ["Bob <bob@example.org>"],
            "cc": ["carol@example.org"],
            "subject": "Sales by region",
            "text": "Dear Bob,\n\nthe report is attached.\n\nAda",
            "attachments": ["report.csv"],
        }
        return {"Status": "CONTINUE", "Function": "send_message", "Args": message}
    return {"Status": "FINISH", "Result": results[-1].value, "Comment": "The report was sent."}


def send_report(folder: Path, port: int) -> TaskResult:
    """Run the task, and approve the message."""
    server = {"host": "127.0.0.1", "port": port, "tls": "none"}
    settings = Settings.load(
        documents={"workspace": folder},
        mail={"office": {"sender": "Ada <ada@example.org>", "smtp": server}},
        journal={"path": folder / "journal.db"},
    )
    with Supervisor.start(settings, models={"app": FunctionModel(app)}) as supervisor:
        handle = supervisor.submit(Task(request="Send report.csv to Bob, and Carol a copy", target="office"))
        for event in handle.events():
            if event.name is EventName.APPROVAL_REQUESTED:
                for request in handle.approvals():
                    print(f"approved: {request.reason}")
                    handle.approve(request.id, by="the example")
        return handle.result(timeout=60)


def main() -> int:
    """Run the task, and print the mail that has come."""
    with tempfile.TemporaryDirectory() as name, MailServer() as server:
        (Path(name) / "report.csv").write_text(REPORT, encoding="utf-8")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            result = send_report(Path(name), server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
    for data in server.mails:
        message = email.message_from_bytes(data, EmailMessage, policy=policy.default)
        files = ", ".join(str(part.get_filename()) for part in message.iter_attachments())
        print(f"came: {message['Subject']}, from {message['From']}, to {message['To']}, with {files}")
    print(f"{result.outcome.value}: {result.comment or '; '.join(cause.reason for cause in result.causes)}")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
