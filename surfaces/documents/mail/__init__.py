"""Mail messages."""

from callboard.surfaces.documents.mail._mail_tools import MailTools, message_text

__all__ = [
    "MailTools",
    "message_text",
]
