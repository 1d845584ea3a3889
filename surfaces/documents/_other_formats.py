"""Formats of other programs, each with a way out."""

from __future__ import annotations

from pathlib import PurePath

_FORMATS = (
    (".docm .dotm", "it may hold macros", ".docx"),
    (".dot", "it is a template", ".docx"),
    (".dotx", "it is a template", ".docx"),
    (".xltx", "it is a template", ".xlsx"),
    (".ott .fodt .sxw", "templates and flat files of OpenDocument can't be read", ".docx"),
    (".ots .fods .sxc", "templates and flat files of OpenDocument can't be read", ".xlsx"),
    (".pages", "the format of Pages can't be read", ".docx"),
    (".wpd .wps .wri .abw .hwp .hwpx .lwp", "the format of another word processor can't be read", ".docx"),
    (".gdoc .gsheet .gslides", "it only links to a document of Google", ".docx, .xlsx or .pdf by a download"),
    (".xlt .xlw", "templates and workspaces of Excel 97 can't be read", ".xlsx"),
    (".xlsb", "binary workbooks can't be read", ".xlsx"),
    (".xltm .xlam", "templates and add-ins with macros can't be read", ".xlsm or .xlsx"),
    (".numbers", "the format of Numbers can't be read", ".xlsx"),
    (".dbf .dif .slk .et .wk1 .wk4 .123 .qpw .mdb .accdb", "tables of this format can't be read", ".xlsx or .csv"),
    (".pptm .ppsm .potm", "it may hold macros", ".pptx"),
    (".ppsx .potx", "it is a show or a template", ".pptx"),
    (".pps .pot .otp .key", "presentations of this format can't be read", ".pptx"),
    (".vsd .vsdx .odg .pub .mpp .one .xps .djvu .ps .eps .epub .ai", "pages of this format can't be read", ".pdf"),
    (".msg .oft", "Outlook's own format can't be read", ".eml"),
    (".mbox .pst .ost .emlx", "mailboxes and their files can't be read", ".eml, each message by itself"),
    (".vcs", "the old format of calendars can't be read", ".ics"),
    (".vcf", "address cards can't be read", ".csv"),
    (".htm .html .xhtml .mht .mhtml", "web pages can't be read", ".docx or .txt"),
    (".log .text .markdown .rst .tex .json .xml .ini .srt", "only .txt and .md texts are read", ".txt"),
    (".prn .tab .psv", "only .csv and .tsv tables are read", ".csv or .tsv"),
    (".heic .heif .svg .psd .avif .ico .jfif .emf .wmf", "pictures of this format can't be read", ".png"),
)
_WAYS_OUT = {suffix: (reason, way) for suffixes, reason, way in _FORMATS for suffix in suffixes.split()}
"""Why files with a suffix are not opened, and the format to save them in."""


def advice_on(name: str) -> str:
    """Explain why another format is not opened, and what to do.

    Args:
        name: The name or path of the file.

    Returns:
        Empty if the suffix is none of these formats.
    """
    reason, way = _WAYS_OUT.get(PurePath(name).suffix.lower(), ("", ""))
    return f"{reason}; save it as {way}" if reason else ""
