"""Read Azure's status feed (RSS, no key). A feed without items is the usual answer.

https://azure.status.microsoft/en-us/status/feed/
"""

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from tools.parsing.fields import clean, from_rfc822, optional
from tools.parsing.xml import rss_channel
from tools.sources.hosts import MINUTE, STATUS
from toolserver import Get, Licence, Source, SourceChanged, read_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LICENCE = Licence("unclear", "Azure status", "https://azure.status.microsoft")


class AzureItem(NamedTuple):
    """An ongoing event."""

    title: str
    published_at: datetime | None


class AzureFeed(NamedTuple):
    """The feed as it was built at `built_at`."""

    built_at: datetime
    items: tuple[AzureItem, ...]


def parse(body: bytes, query: None) -> AzureFeed:
    """Return every item of the channel, which must state its owner and when it was built."""
    channel = rss_channel(body)
    if "azure" not in channel.findtext("title", "Azure").lower():
        raise SourceChanged("another feed")
    built = channel.findtext("lastBuildDate")
    if not built:
        raise SourceChanged("no lastBuildDate")
    return AzureFeed(from_rfc822(built), read_rows(channel.iter("item"), _item))


def _item(item: "Element") -> AzureItem:
    title = clean(item.findtext("title") or "")
    if not title:
        raise SourceChanged("an item without a title")
    return AzureItem(title, optional(from_rfc822, item.findtext("pubDate")))


def newest(feed: AzureFeed) -> datetime | None:
    return max((item.published_at for item in feed.items if item.published_at), default=None)


AZURE_STATUS = Source(
    "Azure.status_feed",
    Get("https://rssfeed.azure.status.microsoft/en-us/status/feed/", decode="bytes"),
    parse,
    licence=LICENCE,
    hosts=STATUS,
    fresh_s=120,
    ageless="the feed may not be rebuilt while nothing happens",
    keep_s=30 * MINUTE,
    timeout_s=10,
    newest=newest,
    untrusted=True,
)
