"""Documents that refer to pictures, templates and cells elsewhere."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import zipfile
from typing import TYPE_CHECKING

import docx
import openpyxl
from office_files import changed, letter

if TYPE_CHECKING:
    from collections.abc import Iterator

_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OPEN_DOCUMENT = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office",
        "text": "text",
        "table": "table",
        "draw": "drawing",
        "svg": "svg-compatible",
        "presentation": "presentation",
        "style": "style",
    }.items()
)


def remote_documents(address: str) -> dict[str, bytes]:
    """Make a document of each format, by its name, that refers to an address.

    Args:
        address: An address of HTTP or of a file.
    """
    return {
        "letter.docx": _word(address),
        "book.xlsx": _workbook(address),
        "text.odt": open_document("text", _TEXT.format(address=address)),
        "sheet.ods": open_document("spreadsheet", _SHEET.format(address=address)),
        "slides.odp": open_document("presentation", _SLIDE.format(address=address)),
        "text.rtf": _RICH_TEXT.replace("ADDRESS", address).encode(),
    }


def open_document(kind: str, body: str) -> bytes:
    """Make an OpenDocument file of a kind, such as ``text``."""
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    content = (
        f'<office:document-content {_OPEN_DOCUMENT} xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.2">'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{media_type}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", media_type)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", manifest)
    return out.getvalue()


_PICTURE = (
    '<draw:frame svg:width="3cm" svg:height="3cm" svg:x="1cm" svg:y="1cm"{anchor}>'
    '<draw:{kind} xlink:href="{{address}}/{name}" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/>'
    "</draw:frame>"
)
_TEXT = (
    "<text:p>before</text:p>"
    '<text:section text:name="one"><text:section-source xlink:href="{address}/section.odt" xlink:type="simple"/>'
    "<text:p>old</text:p></text:section>"
    '<text:section text:name="two"><office:dde-source office:dde-application="soffice"'
    ' office:dde-topic="{address}/a.odt" office:dde-item="b"'
    ' office:automatic-update="true"/><text:p>old</text:p></text:section><text:p>'
    + _PICTURE.format(kind="image", name="picture.png", anchor=' text:anchor-type="as-char"')
    + _PICTURE.format(kind="floating-frame", name="frame.html", anchor=' text:anchor-type="as-char"')
    + _PICTURE.format(kind="object", name="object.odt", anchor=' text:anchor-type="as-char"')
    + "</text:p>"
)
_SHEET = (
    '<table:table table:name="one"><table:table-source xlink:href="{address}/book.ods" table:table-name="one"'
    ' xlink:type="simple"/><table:table-row><table:table-cell office:value-type="string"'
    " table:formula=\"of:=['{address}/book.ods'#$one.A1]\"><text:p>old</text:p></table:table-cell>"
    '<table:table-cell table:formula="of:=COM.MICROSOFT.WEBSERVICE(&quot;{address}/service&quot;)">'
    "<text:p>old</text:p></table:table-cell><table:table-cell>"
    '<table:cell-range-source table:name="a" xlink:href="{address}/web.html" xlink:type="simple"'
    ' table:filter-name="calc_HTML_WebQuery" table:last-column-spanned="1" table:last-row-spanned="1"'
    ' table:refresh-delay="PT1S"/><text:p/></table:table-cell></table:table-row><table:shapes>'
    + _PICTURE.format(kind="image", name="picture.png", anchor="")
    + "</table:shapes></table:table>"
)
_SLIDE = (
    '<draw:page draw:name="one">'
    + "".join(
        _PICTURE.format(kind=kind, name=name, anchor="")
        for kind, name in (("image", "picture.png"), ("floating-frame", "frame.html"), ("object", "object.odp"))
    )
    + "</draw:page>"
)
_RICH_TEXT = (
    r"{\rtf1\ansi{\*\template ADDRESS/template.dot}\pard before\par"
    r'{\field{\*\fldinst INCLUDEPICTURE "ADDRESS/picture.png" \\d }{\fldrslt old}}\par'
    r'{\field{\*\fldinst INCLUDETEXT "ADDRESS/text.rtf" }{\fldrslt old}}\par'
    r"{\object\objautlink\rsltpict{\*\objclass Word.Document.8}{\*\objdata 01050000}{\result old}}\par}"
)


def _word(address: str) -> bytes:
    document = docx.Document(io.BytesIO(letter()))
    shape = document.add_picture(io.BytesIO(pixel()))
    out = io.BytesIO()
    document.save(out)
    blip = shape._inline.graphic.graphicData.pic.blipFill.blip.embed.encode()  # noqa: SLF001 - no public name

    def spoil(parts: dict[str, bytes]) -> None:
        main = parts["word/document.xml"].replace(b'r:embed="' + blip, b'r:link="far1')
        fields = "".join(
            f'<w:p><w:fldSimple w:instr=" {name} &quot;{address}/{file}&quot; {switch} "><w:r><w:t>old</w:t></w:r>'
            "</w:fldSimple></w:p>"
            for name, file, switch in (("INCLUDEPICTURE", "field.png", "\\d"), ("INCLUDETEXT", "text.docx", ""))
        )
        chunk = '<w:altChunk r:id="far2"/>' if "r:" else ""
        parts["word/document.xml"] = main.replace(b"<w:sectPr", f"{fields}{chunk}<w:sectPr".encode(), 1)
        _add_links(parts, "word/_rels/document.xml.rels", address, {"far1": "image", "far2": "aFChunk"})
        template = f'<w:attachedTemplate xmlns:r="{_RELATIONSHIPS}" r:id="far3"/>'.encode()
        head, _, tail = parts["word/settings.xml"].partition(b"<w:")
        opening, _, body = tail.partition(b">")
        parts["word/settings.xml"] = head + b"<w:" + opening + b">" + template + body
        _add_links(parts, "word/_rels/settings.xml.rels", address, {"far3": "attachedTemplate"})

    return changed(out.getvalue(), spoil)


def _workbook(address: str) -> bytes:
    book = openpyxl.Workbook()
    book.active["A1"] = "=[1]Sheet1!A1"
    book.active["A2"] = f'=_xlfn.WEBSERVICE("{address}/service")'
    book.active["A3"] = f"='{address}/[other.xlsx]Sheet1'!A1"
    book.active.add_image(openpyxl.drawing.image.Image(io.BytesIO(pixel())))
    out = io.BytesIO()
    book.save(out)

    def spoil(parts: dict[str, bytes]) -> None:
        drawing = "xl/drawings/drawing1.xml"
        parts[drawing] = (
            parts[drawing].replace(b'r:embed="rId1"', b'r:link="far1"').replace(b'embed="rId1"', b'link="far1"')
        )
        _add_links(parts, "xl/drawings/_rels/drawing1.xml.rels", address, {"far1": "image"})
        reference = (
            f'<externalReferences><externalReference xmlns:r="{_RELATIONSHIPS}" r:id="far2"/></externalReferences>'
        )
        parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b"<calcPr", reference.encode() + b"<calcPr")
        link = "xl/externalLinks/externalLink1.xml"
        parts[link] = (
            '<externalLink xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            f'<externalBook xmlns:r="{_RELATIONSHIPS}" r:id="far3"><sheetNames><sheetName val="Sheet1"/></sheetNames>'
            "</externalBook></externalLink>"
        ).encode()
        _add_links(parts, "xl/externalLinks/_rels/externalLink1.xml.rels", address, {"far3": "externalLinkPath"})
        relationship = (
            f'<Relationship Id="far2" Type="{_RELATIONSHIPS}/externalLink" Target="/{link}"/></Relationships>'
        )
        rels = "xl/_rels/workbook.xml.rels"
        parts[rels] = parts[rels].replace(b"</Relationships>", relationship.encode())
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.externalLink+xml"
        types = f'<Override PartName="/{link}" ContentType="{kind}"/></Types>'
        parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"</Types>", types.encode())

    return changed(out.getvalue(), spoil)


def _add_links(parts: dict[str, bytes], name: str, address: str, kinds: dict[str, str]) -> None:
    """Add relationships that lead out of the package."""
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    old = parts.get(name, f'<Relationships xmlns="{package}"></Relationships>'.encode())
    links = "".join(
        f'<Relationship Id="{key}" Type="{_RELATIONSHIPS}/{kind}" Target="{address}/{kind}" TargetMode="External"/>'
        for key, kind in kinds.items()
    )
    parts[name] = old.replace(b"</Relationships>", f"{links}</Relationships>".encode())


def pixel() -> bytes:
    """Make a small picture."""
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    return out.getvalue()


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """Yield a local port, and the first bytes of each connection to it."""
    connections: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    connections.append(b"")
                    client.settimeout(0.2)
                    try:
                        connections[-1] = client.recv(1000)
                        client.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    except OSError:  # a client that waits for a greeting
                        continue

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield server.getsockname()[1], connections
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
