"""GitHub's trending page as a feed made by a third party (RSS, no key): names only, no numbers.

https://github.com/mshibanami/GitHubTrendingRSS
"""

import re
from typing import NamedTuple

from tools.shared.text import NAME, clean, web_url
from tools.shared.xml import xml_root
from tools.sources.hosts import other
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

FEED = "https://mshibanami.github.io/GitHubTrendingRSS/weekly/all.xml"
LICENCE = Licence("unclear", "GitHubTrendingRSS", "https://github.com/mshibanami/GitHubTrendingRSS")
_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class TrendingRepo(NamedTuple):
    """A repository on the trending page."""

    full_name: str
    url: str


def request(query: None, keys: Keys) -> Get:
    return Get(FEED, decode="bytes")


def parse(body: bytes, query: None) -> tuple[TrendingRepo, ...]:
    """Every item of the feed, in its order."""
    root = xml_root(body)
    channel = root.find("channel")
    if root.tag != "rss" or channel is None:
        raise SourceChanged("no channel")
    return tuple(_repo(item.findtext("title") or "", item.findtext("link") or "") for item in channel.iter("item"))


def _repo(title: str, link: str) -> TrendingRepo:
    name, url = clean(title, NAME), web_url(link)
    if not _FULL_NAME.fullmatch(name) or url is None:
        raise SourceChanged(f"title is {name!r:.60}")
    return TrendingRepo(name, url)


TRENDING = Source(
    "GitHubTrending.rss",
    request,
    parse,
    licence=LICENCE,
    hosts=other("github-trending"),
    fresh_s=3600,
    keep_s=172800,
    timeout_s=10,
    least=5,
    untrusted=True,
)
