"""Score titles by a list of words (lexicon 1). The score counts words and does not consider context."""

import functools
import re

POSITIVE = (
    "surge soar rally jump gain climb rise rebound recover beat outperform upgrade bullish breakout approve approval"
    " adopt adoption inflow profit growth strong boost buyback accumulate expand partnership milestone win optimism"
    " upside record-high all-time-high outpace exceed top raise dividend relief"
)
NEGATIVE = (
    "plunge crash slump tumble drop fall sink slide selloff sell-off dump loss lose miss downgrade bearish breakdown"
    " hack exploit breach lawsuit sue probe investigate fraud scam ban halt delay layoff bankrupt bankruptcy default"
    " outflow liquidate liquidation recession warn weak fear delist tariff outage"
)
IRREGULAR = {"rose": 1, "won": 1, "beaten": 1, "fell": -1, "sank": -1, "lost": -1, "slid": -1, "sold-off": -1}
NEGATORS = frozenset("no not never without fails denies despite ends".split())
REACH = 3  # words before a hit in which a negator reverses it

_VOWELS = "aeiou"
_DOUBLES = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")  # one syllable that ends in one vowel and one consonant
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def forms(word: str) -> frozenset[str]:
    """Return the word with the endings of English verbs and nouns, including forms that do not exist."""
    if "-" in word:
        return frozenset({word, f"{word}s"})
    stem = word.removesuffix("e")
    plural = f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"
    if word.endswith("y") and word[-2] not in _VOWELS:
        return frozenset({word, f"{word[:-1]}ies", f"{word[:-1]}ied", f"{word}ing"})
    if _DOUBLES.fullmatch(word):
        stem += word[-1]
    return frozenset({word, plural, f"{stem}ed", f"{stem}ing"})


WORTH = (
    {form: 1 for word in POSITIVE.split() for form in forms(word)}
    | {form: -1 for word in NEGATIVE.split() for form in forms(word)}
    | IRREGULAR
)


@functools.lru_cache(4096)
def score(title: str) -> float:
    """Return (positive - negative) / (positive + negative) words, -1 … 1; 0 without any."""
    words = _WORD.findall(title.casefold())
    hits = [at for at, word in enumerate(words) if word in WORTH or "-" in word]  # hits are few, so only they cost time
    signs = [sign for at in hits for sign in _signs(words[at], words[max(0, at - REACH) : at])]
    return sum(signs) / len(signs) if signs else 0.0


def _signs(word: str, before: list[str]) -> list[int]:
    """Return +1 or -1 for the word, or for each part of a compound that is not an entry itself."""
    parts = [word] if word in WORTH else word.split("-")
    turned = -1 if NEGATORS.intersection(before) else 1
    return [turned * WORTH[part] for part in parts if part in WORTH]
