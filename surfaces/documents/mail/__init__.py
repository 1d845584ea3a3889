"""Mail messages."""

from callboard.surfaces.documents.mail._addresses import address_header, parse_address, set_addresses
from callboard.surfaces.documents.mail._headers import check_headers, header_text
from callboard.surfaces.documents.mail._mail_tools import MailTools, message_text
from callboard.surfaces.documents.mail._message_parts import (
    POLICY,
    attachment_name,
    content_bytes,
    headers_of,
    message_contents,
    parse_message,
    shown_header,
)

__all__ = [
    "POLICY",
    "MailTools",
    "address_header",
    "attachment_name",
    "check_headers",
    "content_bytes",
    "header_text",
    "headers_of",
    "message_contents",
    "message_text",
    "parse_address",
    "parse_message",
    "set_addresses",
    "shown_header",
]
