"""Read the hot posts of four boards of Reddit (Atom, no key; display only). Data centres are often refused.

https://www.reddit.com/wiki/rss/
"""

from typing import TYPE_CHECKING

from tools.parsing.feeds import Headline, newest_headline
from tools.parsing.fields import clean_or_none, from_iso, web_url
from tools.parsing.xml import xml_root
from tools.sources.hosts import DAY, HOUR, MINUTE, REDDIT
from toolserver import Get, Licence, Source, SourceChanged, read_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

ATOM = "{http://www.w3.org/2005/Atom}"
LICENCE = Licence("non_commercial", "Reddit", "https://redditinc.com/policies/user-agreement")
BOARDS = ("CryptoCurrency", "wallstreetbets", "stocks", "investing")
POSTS = 50


def parse(body: bytes, query: None) -> tuple[Headline, ...]:
    """Return every post that has a title and a date, in the order of the board."""
    root = xml_root(body)
    if root.tag != f"{ATOM}feed":
        raise SourceChanged(f"root is {root.tag!r:.60}")
    return read_rows(root.findall(f"{ATOM}entry"), _headline)


def _headline(entry: "Element") -> Headline | None:
    title = clean_or_none(entry.findtext(f"{ATOM}title"))
    written = entry.findtext(f"{ATOM}published") or entry.findtext(f"{ATOM}updated")
    if title is None or not written:
        return None
    at = from_iso(written)
    link = entry.find(f"{ATOM}link")
    return Headline(title, None if link is None else web_url(link.get("href")), at)


def board(name: str) -> Source[None, tuple[Headline, ...]]:
    """Return the source of a board's hot posts."""
    return Source(
        f"Reddit.{name}_rss",
        Get(f"https://www.reddit.com/r/{name}/hot/.rss", params={"limit": str(POSTS)}, decode="bytes"),
        parse,
        licence=LICENCE,
        hosts=REDDIT,
        fresh_s=10 * MINUTE,
        newest_max_s=2 * DAY,
        keep_s=6 * HOUR,
        timeout_s=10,
        newest=newest_headline,
        least=10,
        untrusted=True,
    )


HOT = tuple(board(name) for name in BOARDS)
