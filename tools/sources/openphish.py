"""Read URLs of phishing pages from OpenPhish's community feed (text, no key, not for commercial use).

https://openphish.com/phishing_feeds.html
"""

from tools.parsing.defang import literal
from tools.sources.hosts import HOUR, RAW
from toolserver import Get, Licence, Source, SourceChanged, read_rows

FEED = "https://raw.githubusercontent.com/openphish/public_feed/refs/heads/main/feed.txt"
LICENCE = Licence("non_commercial", "OpenPhish", "https://openphish.com/terms.html")


def parse(body: str, query: None) -> tuple[str, ...]:
    """Return every URL, in the order of the feed: live dangerous strings, never fetched, shown only defanged.

    A last line without its end may be cut, and with it the list.
    """
    if not body.endswith("\n"):
        raise SourceChanged("the last line is cut")
    return read_rows((line for line in body.split("\n") if line.strip()), _url)


def _url(line: str) -> str:
    url = literal(line)
    if not url.lower().startswith(("http://", "https://")):
        raise SourceChanged(f"a line is not a URL: {url[:8]!r}")
    return url


PHISHING_URLS = Source(
    "OpenPhish.feed",
    Get(FEED, decode="text"),
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=HOUR,
    ageless="a list of addresses without timestamps, written twice a day",
    timeout_s=10,
    conditional=True,
    least=20,
    untrusted=True,
)
