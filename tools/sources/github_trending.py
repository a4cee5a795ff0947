"""Read GitHub's trending page from a third party's feed (RSS, no key): names only, no numbers.

https://github.com/mshibanami/GitHubTrendingRSS
"""

import re
from typing import NamedTuple

from tools.parsing.fields import NAME, clean, web_url
from tools.parsing.xml import rss_items
from tools.sources.hosts import DAY, HOUR, other
from toolserver import Get, Licence, Source, SourceChanged, read_rows

FEED = "https://mshibanami.github.io/GitHubTrendingRSS/weekly/all.xml"
LICENCE = Licence("unclear", "GitHubTrendingRSS", "https://github.com/mshibanami/GitHubTrendingRSS")
_FULL_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class TrendingRepo(NamedTuple):
    """A repository on the trending page."""

    full_name: str
    url: str


def parse(body: bytes, query: None) -> tuple[TrendingRepo, ...]:
    """Return every item of the feed, in its order."""
    return read_rows(rss_items(body), lambda item: _repo(item.findtext("title") or "", item.findtext("link") or ""))


def _repo(title: str, link: str) -> TrendingRepo:
    name, url = clean(title, NAME), web_url(link)
    if not _FULL_NAME.fullmatch(name) or url is None:
        raise SourceChanged(f"title is {name!r:.60}")
    return TrendingRepo(name, url)


TRENDING = Source(
    "GitHubTrending.rss",
    Get(FEED, decode="bytes"),
    parse,
    licence=LICENCE,
    hosts=other("github-trending"),
    fresh_s=HOUR,
    ageless="a weekly list; neither the list nor its items carry a timestamp",
    keep_s=2 * DAY,
    timeout_s=10,
    least=5,
    untrusted=True,
)
