"""Mailboxes in the settings."""

from __future__ import annotations

import pytest

from callboard import Settings
from callboard.errors import SettingsError

OFFICE = {"sender": "Ada <ada@example.org>", "smtp": {"host": "smtp.example.org"}}


def load(**changes):
    return Settings.load(mail={"office": {**OFFICE, **changes}}).mail["office"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_server_of_this_machine_may_be_unencrypted(host):
    assert load(smtp={"host": host, "tls": "none"}).smtp.tls == "none"


@pytest.mark.parametrize("host", ["smtp.example.org", "192.0.2.1", "localhost.example.org", "0.0.0.0"])  # noqa: S104
def test_server_of_another_machine_is_encrypted_unless_that_is_said(host):
    with pytest.raises(SettingsError, match="for a server on this machine"):
        load(smtp={"host": host, "tls": "none"})
    assert load(smtp={"host": host, "tls": "unencrypted"}).smtp.tls == "unencrypted"
    assert load(smtp={"host": host}).smtp.tls == "implicit"


@pytest.mark.parametrize("sender", ["ada@example.org", "Ada <ada@example.org>", "Zoë X. <z@example.org>"])
def test_sender_is_one_address(sender):
    assert load(sender=sender).sender == sender


@pytest.mark.parametrize("sender", ["ada", "a@b, c@d", "Ada <a@b>\nBcc: c@d", "<a@b> <c@d>", ""])
def test_sender_that_is_not_one_address_is_refused(sender):
    with pytest.raises(SettingsError, match="sender"):
        load(sender=sender)


def test_mailbox_without_a_server_is_refused():
    with pytest.raises(SettingsError, match="needs `smtp` to send mail, or `imap` to read it"):
        load(smtp=None)
