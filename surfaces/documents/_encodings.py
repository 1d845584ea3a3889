"""Encodings of texts without a mark: detected, and called a guess."""

from __future__ import annotations

import codecs
import itertools
import math
import re
import unicodedata
from typing import Annotated, Literal

from pydantic import Field

from callboard.surfaces._tool_function import ToolError

Encoding = Annotated[
    str, Field(description="The file's encoding, such as cp1250 or utf-16; auto detects it, and may guess.")
]

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The byte order marks, longer ones first."""
_SAMPLE_BYTES = 20_000
_DOUBT = 0.2
"""The faults a word by which the library's answer may be worse than the best one."""
_COHERENT = 0.2
"""The library recognizes the language of a text only if it is long enough."""
_NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "mbcs", "oem", "unicode-escape", "raw-unicode-escape"})
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёєіїґўјљњћџђ"
_WESTERN = ("äöüßåæøéá", "éèàùçêâôîûëïüœæ", "áéíóúñüãõâêôçà", "àèéìòù", "áéíóúýþðæö")
_CENTRAL = ("áčďéěíĺľňóôŕřšťúůýžä", "ąćęłńóśźż", "áéíóöőúüű", "ăâîşţ", "čćđšž", "äöüß")
_ALPHABETS = {
    "cp1252": _WESTERN,
    "cp1250": _CENTRAL,
    "cp1251": (_CYRILLIC,),
    "mac_roman": _WESTERN,
    "cp932": (),
    "cp949": (),
    "gb18030": (),
    "big5": (),
    "cp1253": ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ",),
    "cp1254": ("çğıi̇öşüâî",),
    "cp1257": ("āčēģīķļņšūž", "ąčęėįšųūž", "äöõüšž"),
    "koi8_r": (_CYRILLIC,),
    "cp1255": ("אבגדהוזחטיכךלמםנןסעפףצץקרשת",),
    "cp1256": ("ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگ",),
    "cp850": _WESTERN,
    "cp852": _CENTRAL,
    "cp866": (_CYRILLIC,),
    "cp874": ("".join(map(chr, range(0xE01, 0xE5C))),),
    "koi8_u": (_CYRILLIC,),
    "iso8859_2": _CENTRAL,
    "iso8859_5": (_CYRILLIC,),
    "mac_cyrillic": (_CYRILLIC,),
    "mac_latin2": _CENTRAL,
    "euc_jp": (),
}
"""The letters beyond ASCII in each language of an encoding, likely encodings first.

Those of East Asia are recognized by their scripts.
"""
_WORD = re.compile(r"[^\W\d_]+(?:[^\w\s.,;:|\"'()/<>=+*&%$#@!?-]+[^\W\d_]+)*")
_NOT_WESTERN = re.compile(
    r"[ìòù](?=[a-z])|õ(?![a-z])|ç(?=[b-df-hj-np-tv-zei])|[£¥¯¨¸¹³¼¾](?=[^\W\d_])|(?<=[^\W\d_])[¯¨¸¹¼¾]"
)
"""Letters and signs at places where no language of the West has them: they are other letters in another encoding."""
_NO_TEXT = re.compile("[\u2500-\u259f\ue000-\uf8ff\x80-\x9f]")
_IN_WORDS = frozenset("\u2019\u2010\u2011\u00ad\u200b\u200c\u200d")
Script = Literal["latin", "cyrillic", "han", "kana", "half", "hangul", "other"]
_SCRIPTS: dict[str, Script] = {
    "LATIN": "latin", "CYRILLIC": "cyrillic", "CJK": "han", "HIRAGANA": "kana", "KATAKANA": "kana",
    "KATAKANA-HIRAGANA": "kana", "HALFWIDTH": "half", "HANGUL": "hangul",
}  # fmt: skip


def check_encoding(name: str) -> str:
    """Return the normal name of an encoding.

    Raises:
        ToolError: If there is no such encoding of texts.
    """
    try:
        normal = codecs.lookup(name).name
        "".encode(normal)  # a codec of bytes, such as hex, is none of texts
    except (LookupError, ValueError, TypeError, UnicodeError):
        normal = ""
    if not normal or normal in _NO_CHARSETS:
        msg = f"there is no encoding {name!r}; write one such as utf-8, cp1250, cp932 or utf-16-le"
        raise ToolError(msg)
    return normal


def detect_encoding(data: bytes) -> tuple[str, bool]:
    """Detect the encoding of a text without a byte order mark.

    Returns:
        The encoding, empty if it is not a text; and whether it is a guess.
    """
    if b"\0" in data:
        return _wide(data), True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _guess_encoding(data), True
    if b"\x1b$" in data or b"\x1b(" in data:
        return ("iso2022_jp" if _decodes(data, "iso2022_jp") else "utf-8"), True
    return "utf-8", False


def decode_guessing(data: bytes) -> str:
    """Decode bytes by detection; no byte is lost."""
    encoding, _ = detect_encoding(data)
    return data.decode(encoding or "latin-1", "replace")


def _wide(data: bytes) -> str:
    """Return the order of bytes of UTF-16 or UTF-32 without a mark."""
    even_zeros, odd_zeros = data[::2].count(0), data[1::2].count(0)
    names = ["utf-16-le", "utf-32-le"] if odd_zeros > even_zeros else ["utf-16-be"]
    for name in (*names, "utf-32-be"):
        if _decodes(data, name):
            letters = data.decode(name)[:_SAMPLE_BYTES]
            controls = sum(unicodedata.category(letter) in {"Cc", "Cn", "Co"} for letter in letters)
            if controls == len(re.findall(r"[\t\r\n]", letters)):
                return name
    return ""


def _decodes(data: bytes, name: str) -> bool:
    try:
        data.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _guess_encoding(data: bytes) -> str:
    lines = [line for line in data.splitlines(keepends=True) if not line.isascii()]
    sample = b"".join(lines)[:_SAMPLE_BYTES]
    candidates = [name for name in _ALPHABETS if _decodes(data, name)]
    if not _can_detect():
        candidates = [name for name in candidates if name == "cp1252"]
    scores = {name: _score(sample.decode(name, "ignore"), name) for name in candidates}
    if b"\r" in data and b"\n" not in data and "mac_roman" in scores:  # the line breaks of old Macs
        scores["mac_roman"] += 1
    best = max(scores, key=lambda name: scores[name], default="latin-1")  # the first of equal ones
    language = _by_language(sample, candidates)
    return language if language and scores.get(language, -math.inf) >= scores[best] - _DOUBT else best


def _can_detect() -> bool:
    try:
        import charset_normalizer  # noqa: F401 - whether it is installed
    except ImportError:
        return False
    return True


def _by_language(sample: bytes, candidates: list[str]) -> str:
    """Ask charset-normalizer, which knows the letters' frequencies in languages."""
    try:
        import charset_normalizer
    except ImportError:
        return ""
    match = charset_normalizer.from_bytes(sample, cp_isolation=candidates, enable_fallback=False).best()
    return match.encoding if match is not None and match.coherence > _COHERENT else ""


def _score(text: str, name: str) -> float:
    """Measure how well words with letters beyond ASCII fit an encoding."""
    words = [word for word in set(_WORD.findall(text)) if not word.isascii()]
    faults = 2.0 * len(_NO_TEXT.findall(text)) + sum(map(_faults, words))
    letters = [letter.lower() for word in words for letter in word if letter.isalpha() and not letter.isascii()]
    if alphabets := _ALPHABETS[name]:
        faults += min(sum(letter not in alphabet for letter in letters) for alphabet in alphabets)
    else:
        faults += sum(_script(letter) in {"latin", "cyrillic", "other"} for letter in letters)
    if name in {"cp1252", "mac_roman", "cp850"}:
        faults += len(_NOT_WESTERN.findall(text.lower()))
    return -faults / max(len(words), 1)


def _faults(word: str) -> float:
    """Count the features of a word that no language has."""
    letters = [letter for letter in word if letter.isalpha()]
    scripts = {_script(letter) for letter in letters}
    mixed = len(scripts - {"han"}) > 1 or scripts in ({"han", "hangul"}, {"han", "latin"}, {"han", "half"})
    marks = {letter for letter in word if unicodedata.category(letter).startswith("M")}
    signs = sum(not (letter.isalpha() or letter.isascii() or letter in {*_IN_WORDS, *marks}) for letter in word)
    jumps = sum(first.islower() and second.isupper() for first, second in itertools.pairwise(word))
    crowded = scripts == {"latin"} and len(letters) > 1 and 2 * sum(map(str.isascii, letters)) < len(letters)
    return 3 * mixed + 2 * signs + jumps + 2 * crowded


def _script(letter: str) -> Script:
    return _SCRIPTS.get(unicodedata.name(letter, "").partition(" ")[0], "other")
