"""Characters that nobody sees. What is done with them is tested where texts are cleaned."""

import unicodedata

import pytest

from toolserver.core.visible_text import INVISIBLE


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u202e", "\u3164", "\u2800", "\ufe0f", "\U000e0041", "\x00", "\ud800"], ids=ascii
)
def test_what_nobody_sees_matches(hidden):
    assert INVISIBLE.fullmatch(hidden)


def test_no_letter_that_is_drawn_matches():
    blank = {0x115F, 0x1160, 0x3164, 0xFFA0, 0x17B4, 0x17B5, 0x16FE4}
    hidden = {n for n in range(0x110000) if unicodedata.category(chr(n))[0] in "LN" and INVISIBLE.fullmatch(chr(n))}
    assert hidden <= blank
    assert not INVISIBLE.search(" aé日हिन्दी\n\t🌋")
