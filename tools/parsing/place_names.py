"""Read names of places as people write them: without case, accents and punctuation, and in parts.

San Francisco, CA      San Francisco CA      São Paulo (Brazil)      東京、日本      St. John's
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_POINTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u200b-\u200f]")
"""Accents of Latin, Greek and Cyrillic letters, points of Hebrew and Arabic ones, and joiners.

The vowel signs of Indian scripts and the voicing marks of kana are part of a name.
"""

_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŋ": "ng", "ə": "e"}
    | {"ى": "ي", "ی": "ي", "ک": "ك", "ہ": "ه", "ة": "ه"}  # of Arabic, Persian and Urdu keyboards
    | dict.fromkeys("'’‘ʻʼʹʿʾ`´", None)
)
_ABBREVIATION = re.compile(r"(?<![^\W_]{2})\.")  # the dots of D.C. and U.S.A.; that of St. parts words
_SHORT = {"saint": "st", "sainte": "ste", "mount": "mt", "fort": "ft"}
_SEPARATOR = re.compile(r"[,;，、،؛()（）]")
_POST_CODE = re.compile(r"\s+[\d-]+$")
LONGEST_AREA = 3  # words of a state or country after a name without a comma


class PlaceQuery(NamedTuple):
    """One way to read what was written: a place's name, and areas that it lies in, the smallest first."""

    name: str
    areas: tuple[str, ...] = ()


def fold(name: str) -> str:
    """Return a name without case, accents and punctuation: "São Paulo" and "SAO-PAULO" become "sao paulo"."""
    text = _ABBREVIATION.sub("", name.casefold())
    text = _POINTS.sub("", unicodedata.normalize("NFKD", text)).translate(_LETTERS)
    text = unicodedata.normalize("NFC", text)
    words = "".join(" " if unicodedata.category(letter)[0] in "PSZC" else letter for letter in text).split()
    return " ".join(_SHORT.get(word, word) for word in words)


def split_name(text: str) -> tuple[str, ...]:
    """Return the parts between commas and brackets, without postal codes: "Austin, TX 78701" is Austin and TX."""
    parts = (" ".join(part.split()) for part in _SEPARATOR.split(text))
    first, *others = [part for part in parts if part] or [""]
    return first, *(part for part in (_POST_CODE.sub("", other) for other in others) if not part.isdecimal())


def read_place(text: str) -> Iterator[PlaceQuery]:
    """Yield the ways to read a text, the likeliest first.

    The first part is usually the name. In some countries it is the last one, and some names
    have brackets: "Frankfurt (Oder)". Without a comma, the last words may be an area: "Paris
    Texas".
    """
    name, *areas = split_name(text)
    yield PlaceQuery(name, tuple(areas))
    if areas:
        yield PlaceQuery(text)
        yield PlaceQuery(areas[-1], (*reversed(areas[:-1]), name))
        return
    words = name.split()
    for count in range(1, min(LONGEST_AREA, len(words) - 1) + 1):
        yield PlaceQuery(" ".join(words[:-count]), (" ".join(words[-count:]),))
