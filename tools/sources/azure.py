"""Azure's status feed (RSS, no key). A feed without items is the usual answer.

https://azure.status.microsoft/en-us/status/feed/
"""

from datetime import datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element

from tools.shared.optional import optional
from tools.shared.text import clean
from tools.shared.times import from_rfc822
from tools.shared.xml import xml_root
from tools.sources.hosts import STATUS
from toolserver.errors import SourceChanged
from toolserver.upstream.source import Get, Keys, Licence, Source

LICENCE = Licence("unclear", "Azure status", "https://azure.status.microsoft")


class AzureItem(NamedTuple):
    """An event that is going on."""

    title: str
    published_at: datetime | None


class AzureFeed(NamedTuple):
    """The feed as it was built at `built_at`."""

    built_at: datetime
    items: tuple[AzureItem, ...]


def request(query: None, keys: Keys) -> Get:
    return Get("https://rssfeed.azure.status.microsoft/en-us/status/feed/", decode="bytes")


def parse(body: bytes, query: None) -> AzureFeed:
    """Every item of the channel, which must say whose it is and when it was built."""
    root = xml_root(body)
    channel = root.find("channel")
    if root.tag != "rss" or channel is None:
        raise SourceChanged("no channel")
    if "azure" not in channel.findtext("title", "Azure").lower():
        raise SourceChanged("another feed")
    built = channel.findtext("lastBuildDate")
    if not built:
        raise SourceChanged("no lastBuildDate")
    return AzureFeed(from_rfc822(built), tuple(_item(item) for item in channel.iter("item")))


def _item(item: Element) -> AzureItem:
    title = clean(item.findtext("title") or "")
    if not title:
        raise SourceChanged("an item without a title")
    return AzureItem(title, optional(from_rfc822, item.findtext("pubDate")))


def newest(feed: AzureFeed) -> datetime | None:
    return max((item.published_at for item in feed.items if item.published_at), default=None)


AZURE_STATUS = Source(
    "Azure.status_feed",
    request,
    parse,
    licence=LICENCE,
    hosts=STATUS,
    fresh_s=120,
    keep_s=1800,
    timeout_s=10,
    newest=newest,
    untrusted=True,
)
