"""Know which characters can stand in a stranger's text and not be seen, and which a terminal obeys."""

import re
from typing import Any

INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # control characters other than white space
    "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # joiners, bidi, soft hyphens
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159"  # letters and marks that draw nothing
    "\ufe00-\ufe0f\U000e0000-\U000e0fff"  # variation selectors, and the tags that spell hidden ASCII
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # annotation, shorthand, music
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # code points that are not characters or not valid in UTF-8
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)
"""Unicode's Default_Ignorable_Code_Point, and what else can stand in a text and not be seen."""

_HIDDEN_IN_NAMES = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029]|{INVISIBLE.pattern}")

_OBEYED = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor, the screen
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def require_visible(name: str) -> str:
    """Return what a person named something, if every character of it can be seen: names stand beside those of others.

    Raises ValueError for a control character (line breaks too), one that turns the direction
    of writing, or one that draws nothing.
    """
    if (hidden := _HIDDEN_IN_NAMES.search(name)) is not None:
        raise ValueError(f"contains U+{ord(hidden.group()):04X}, a character that cannot be seen")
    return name


def disarm(text: str) -> str:
    """Return a text without what a terminal obeys: escape sequences and control characters but tab and newline."""
    return _OBEYED.sub("", text)


def disarm_all(content: Any) -> Any:
    """Return a parsed JSON document in which every text and name is disarmed."""
    if isinstance(content, str):
        return disarm(content)
    if isinstance(content, dict):
        return {disarm(name): disarm_all(member) for name, member in content.items()}
    return [disarm_all(member) for member in content] if isinstance(content, list) else content
