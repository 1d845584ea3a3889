"""Mail messages."""

from callboard.surfaces.documents.mail._addresses import address_header, parse_address, set_addresses
from callboard.surfaces.documents.mail._attached_file import AttachedFile, named_files
from callboard.surfaces.documents.mail._headers import check_headers, header_text
from callboard.surfaces.documents.mail._mail_tools import MailTools, message_text
from callboard.surfaces.documents.mail._message_parts import (
    BEFORE_HEADERS,
    POLICY,
    MailContents,
    attachment_name,
    content_bytes,
    contents_of,
    headers_of,
    is_shown_text,
    message_contents,
    parse_message,
    shown_header,
)

__all__ = [
    "BEFORE_HEADERS",
    "POLICY",
    "AttachedFile",
    "MailContents",
    "MailTools",
    "address_header",
    "attachment_name",
    "check_headers",
    "content_bytes",
    "contents_of",
    "header_text",
    "headers_of",
    "is_shown_text",
    "message_contents",
    "message_text",
    "named_files",
    "parse_address",
    "parse_message",
    "set_addresses",
    "shown_header",
]
