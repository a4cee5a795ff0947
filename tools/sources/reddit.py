"""Reddit: the hot posts of four boards (Atom, no key; display only). Addresses of data centres are often refused.

https://www.reddit.com/wiki/rss/
"""

from datetime import datetime
from xml.etree.ElementTree import Element

from tools.shared.optional import optional
from tools.shared.text import clean_or_none, web_url
from tools.shared.times import from_iso
from tools.shared.xml import xml_root
from tools.sources.hosts import REDDIT
from tools.sources.news_feeds import Headline, newest
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

ATOM = "{http://www.w3.org/2005/Atom}"
LICENCE = Licence("non_commercial", "Reddit", "https://redditinc.com/policies/user-agreement")
BOARDS = ("CryptoCurrency", "wallstreetbets", "stocks", "investing")
POSTS = 50


def parse(body: bytes, query: None) -> tuple[Headline, ...]:
    """Every post that has a title and a date, in the order of the board."""
    root = xml_root(body)
    if root.tag != f"{ATOM}feed":
        raise SourceChanged(f"root is {root.tag!r:.60}")
    found = (_headline(entry) for entry in root.findall(f"{ATOM}entry"))
    return tuple(headline for headline in found if headline)


def _headline(entry: Element) -> Headline | None:
    title = clean_or_none(entry.findtext(f"{ATOM}title"))
    at: datetime | None = optional(from_iso, entry.findtext(f"{ATOM}published") or entry.findtext(f"{ATOM}updated"))
    if title is None or at is None:
        return None
    link = entry.find(f"{ATOM}link")
    return Headline(title, None if link is None else web_url(link.get("href")), at)


def board(name: str) -> Source[None, tuple[Headline, ...]]:
    """The hot posts of a board."""

    def request(query: None, keys: Keys) -> Get:
        return Get(f"https://www.reddit.com/r/{name}/hot/.rss", params={"limit": str(POSTS)}, decode="bytes")

    return Source(
        f"Reddit.{name}_rss",
        request,
        parse,
        licence=LICENCE,
        hosts=REDDIT,
        fresh_s=600,
        keep_s=21600,
        timeout_s=10,
        newest=newest,
        least=10,
        key=lambda query: name,
        untrusted=True,
    )


HOT = tuple(board(name) for name in BOARDS)
