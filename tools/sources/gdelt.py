"""Read the newest articles about markets that GDELT found in the world's online press (JSON, no key).

GDELT allows any use, also commercial, with credit and a link. Titles stay their publishers':
only title, address and name are passed on. One request in five seconds is allowed.

https://blog.gdeltproject.org/gdelt-doc-2-0-api-debuts/
https://www.gdeltproject.org/about.html#termsofuse
"""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, web_url
from tools.sources.hosts import GDELT, HOUR, MINUTE
from toolserver import MIB, Get, Licence, Source, SourceEmpty, read_rows

LICENCE = Licence(
    "attribution", "The GDELT Project, https://www.gdeltproject.org/", "https://www.gdeltproject.org/about.html"
)
TOPICS = "(bitcoin OR ethereum OR crypto OR stocks OR nasdaq) sourcelang:english"


class Article(NamedTuple):
    """An article: its title and address, the domain of its publisher, and when GDELT first saw it."""

    title: str
    url: str | None
    at: datetime
    domain: str


def parse(body: Any, query: None) -> tuple[Article, ...]:
    """Return the articles, newest first. Where GDELT found nothing, the object has no list. Raises SourceEmpty."""
    if not body:
        raise SourceEmpty("no articles")
    return read_rows(body["articles"], _article)


def _article(row: dict[str, Any]) -> Article | None:
    title = clean_or_none(row["title"])
    if title is None or row["language"] != "English":
        return None
    seen = datetime.strptime(row["seendate"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return Article(title, web_url(row["url"]), seen, clean(row["domain"], NAME))


ARTICLES = Source(
    "GDELT.articles",
    Get(
        "https://api.gdeltproject.org/api/v2/doc/doc",
        params={
            "query": TOPICS,
            "mode": "artlist",
            "format": "json",
            "maxrecords": "250",
            "timespan": "1d",
            "sort": "datedesc",
        },
    ),
    parse,
    licence=LICENCE,
    hosts=GDELT,
    fresh_s=15 * MINUTE,
    keep_s=6 * HOUR,
    newest=lambda articles: max((article.at for article in articles), default=None),
    newest_max_s=6 * HOUR,
    least=3,
    max_bytes=2 * MIB,
    untrusted=True,
)
