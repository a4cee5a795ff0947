"""Characters that nobody sees. What is done with them is tested where texts are cleaned."""

import unicodedata

import pytest

from toolserver.core.visible_text import INVISIBLE, disarm, disarm_all, require_visible


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


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x9b2Jx\x9d52;c;aGk=\x9cy", "xy"),
        ("\x1bPq\x1b\\a\x1bcb\x1b(0c", "abc"),
        ("over\rwritten\b\x7f", "overwritten"),
        ("\x1b[\x1b[31m31m", "31m"),
        ("a\tb\nc 🌋 ä", "a\tb\nc 🌋 ä"),
    ],
)
def test_nothing_is_left_that_a_terminal_obeys(written, left):
    assert disarm(written) == left


def test_a_document_is_disarmed_in_every_text_and_name():
    assert disarm_all({"a\x1b[1m": [1, None, {"b": "\x1b[2Jc"}]}) == {"a": [1, None, {"b": "c"}]}


@pytest.mark.parametrize(
    "hidden", ["\n", "\t", "\x00", "\x7f", "\x85", "\u202e", "\u200b", "\u2028", "\ufeff", "\U000e0041"]
)
def test_a_name_has_only_characters_that_can_be_seen(hidden):
    with pytest.raises(ValueError, match=f"U\\+{ord(hidden):04X}"):
        require_visible(f"pay{hidden}roll")
    assert require_visible("Größe 日本 🌋") == "Größe 日本 🌋"
