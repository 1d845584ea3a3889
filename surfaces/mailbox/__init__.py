"""Mailboxes: mail that is sent and read."""

from callboard.surfaces.mailbox._mail_surface import MailSurface

__all__ = ["MailSurface"]
