"""OpenPhish's community feed: URLs of phishing pages (text, no key, not for commercial use).

https://openphish.com/phishing_feeds.html
"""

from tools.shared.defang import literal
from tools.sources.hosts import RAW
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

FEED = "https://raw.githubusercontent.com/openphish/public_feed/refs/heads/main/feed.txt"
LICENCE = Licence("non_commercial", "OpenPhish", "https://openphish.com/terms.html")


def request(query: None, keys: Keys) -> Get:
    return Get(FEED, decode="text")


def parse(body: str, query: None) -> tuple[str, ...]:
    """Every URL, in the order of the feed: live dangerous strings, never fetched, shown only defanged."""
    urls = tuple(literal(line) for line in body.split("\n") if line.strip())
    strange = next((url for url in urls if not url.lower().startswith(("http://", "https://"))), None)
    if strange is not None:
        raise SourceChanged(f"a line is no URL: {strange[:8]!r}")
    return urls


PHISHING_URLS = Source(
    "OpenPhish.feed",
    request,
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=3600,
    keep_s=86400,
    timeout_s=10,
    conditional=True,
    least=20,
    untrusted=True,
)
