"""Simulate news feeds on the wire: RSS 2.0, with differences between the publishers."""

from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from xml.sax.saxutils import escape

from tools.simulated.headlines import SimHeadline, headlines, list_headlines
from toolserver.world.model import Ask, Reply, World, serves

ITEMS = 60
PLACES = {
    "CoinDesk.rss": ("coindesk", "www.coindesk.com", "/arc/outboundfeeds/rss/"),
    "Cointelegraph.rss": ("cointelegraph", "cointelegraph.com", "/rss"),
    "Decrypt.rss": ("decrypt", "decrypt.co", "/feed"),
    "CNBC.top_news_rss": ("cnbc", "www.cnbc.com", "/id/100003114/device/rss/rss.html"),
    "MarketWatch.top_stories_rss": ("marketwatch", "feeds.content.dowjones.io", "/public/rss/mw_topstories"),
    "YahooFinance.news_rss": ("yahoo_finance", "finance.yahoo.com", "/news/rssindex"),
    "BBC.business_rss": ("bbc", "feeds.bbci.co.uk", "/news/business/rss.xml"),
    "FederalReserve.press_rss": ("federal_reserve", "www.federalreserve.gov", "/feeds/press_all.xml"),
}
WRAPPED = {"bbc", "coindesk", "federal_reserve"}  # text in CDATA
BYTE_MARK = {"federal_reserve"}
ISO_DATES = {"yahoo_finance"}


def _feed(name: str, world: World, ask: Ask) -> Reply:
    items = list_headlines(world, name, ITEMS)
    return _rss(name, "".join(_item(name, item) for item in items))


def _drifted(name: str, world: World, ask: Ask) -> Reply:
    """Return another order, a zone without a name, a member of another namespace, and an item without a title."""
    listed = list_headlines(world, name, ITEMS)
    items = [
        f"<item><dc:creator>x</dc:creator><pubDate>{_rfc(item.at)[:-5]}Z</pubDate><guid>{escape(item.url)}</guid>"
        f"<title>\n  {escape(item.title)}  </title></item>"
        for item in listed
        if item.dated
    ]
    return _rss(name, "<item><link>https://untitled.example/</link></item>" + "".join(items))


def _nothing(name: str, world: World, ask: Ask) -> Reply:
    return _rss(name, "")


def _item(name: str, item: SimHeadline) -> str:
    def text(value: str) -> str:
        return f"<![CDATA[{value}]]>" if name in WRAPPED else escape(value)

    stamp = _iso(item.at) if name in ISO_DATES else _rfc(item.at)
    dated = f"<pubDate>{text(stamp)}</pubDate>" if item.dated else ""
    guid = f'<guid isPermaLink="false">{item.origin}</guid>'
    return f"<item><title>{text(item.title)}</title><link>{text(item.url)}</link>{guid}{dated}</item>"


def _rss(name: str, items: str) -> Reply:
    head = "\ufeff" if name in BYTE_MARK else ""
    namespace = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    channel = f"<channel><title>{name}</title><link>https://{name}.example</link>{items}</channel>"
    body = f'{head}<?xml version="1.0" encoding="utf-8" ?><rss {namespace} version="2.0">{channel}</rss>'
    return Reply(body.encode(), content_type="application/rss+xml; charset=utf-8")


def _rfc(at: float) -> str:
    return format_datetime(datetime.fromtimestamp(at, UTC))


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


for source, (name, host, path) in PLACES.items():
    route = serves(source, host, path)(partial(_feed, name))
    route.form("drift")(partial(_drifted, name))
    route.form("empty")(partial(_nothing, name))


@serves("GoogleNews.search_rss", "news.google.com", "/rss/search")
def search(world: World, ask: Ask) -> Reply:
    """Return headlines of other feeds: the publisher follows the title, and the link is a redirect."""
    named = [item for item in headlines(world) if item.dated and item.symbols][:ITEMS]
    items = (
        item._replace(
            title=f"{item.title} - The Daily Nasdaq", url=f"https://news.google.com/rss/articles/{item.origin}"
        )
        for item in named
    )
    return _rss("google_news", "".join(_item("google_news", item) for item in items))
