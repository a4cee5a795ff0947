"""Simulate Azure's status feed on the wire: RSS with its own date format, without items when no event is active."""

from datetime import UTC, datetime
from xml.sax.saxutils import escape

from tools.simulated.incidents import SimIncident, current
from toolserver.world.model import Ask, Reply, World, serves

CHANNEL = """<?xml version="1.0" encoding="utf-8"?>
<rss xmlns:a10="http://www.w3.org/2005/Atom"
  version="2.0">
  <channel xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:dc="http://purl.org/dc/elements/1.1/">
    <title>Azure Status</title>
    <link>https://azure.status.microsoft/en-us/status/</link>
    <description>Azure Status</description>
    <language>en-us</language>
    <lastBuildDate>{built}</lastBuildDate>{items}
  </channel>
</rss>"""
ITEM = """
    <item>
      <guid isPermaLink="false">sim{id}</guid>
      <link>https://azure.status.microsoft/en-us/status/</link>
      <title>{title}</title>
      <description>&lt;p&gt;We are investigating.&lt;/p&gt;</description>
      <pubDate>{published}</pubDate>
    </item>"""


FORMS = {
    # without a build date
    "error200": Reply.text(
        "<rss version='2.0'><channel><title>Azure Status</title></channel></rss>", content_type="text/xml"
    ),
}


@serves("Azure.status_feed", "rssfeed.azure.status.microsoft", "/en-us/status/feed/", forms=FORMS)
def feed(world: World, ask: Ask) -> Reply:
    incident = current(world, "Azure")
    return _reply(world, _item(incident) if incident else "")


def _reply(world: World, items: str) -> Reply:
    minute = world.now - world.now % 60
    text = CHANNEL.format(built=_time(minute), items=items).replace("\n", "\r\n")
    return Reply.text(text, content_type="application/rss+xml; charset=utf-8")


def _item(incident: SimIncident) -> str:
    title = escape(f"Azure Front Door – {incident.title}")
    return ITEM.format(id=incident.id, title=title, published=_time(incident.began))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S Z")
