"""Simulate Reddit's boards on the wire: Atom, and a page of HTML for refused addresses."""

from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from tools.simulated.headlines import SimHeadline, list_headlines
from toolserver.world.model import Ask, Reply, World, serves

HOST = "www.reddit.com"
REFUSAL = (
    "<html><head><title>Blocked</title></head><body><h1>You've been blocked by network security.</h1></body></html>"
)


def _serve(board: str) -> None:
    @serves(f"Reddit.{board}_rss", HOST, f"/r/{board}/hot/.rss")
    def hot(world: World, ask: Ask) -> Reply:
        posts = list_headlines(world, board, int(ask.params.get("limit", "25")))
        return _atom(board, world, "".join(_entry(board, item) for item in posts))

    @hot.form("empty")
    def no_posts(world: World, ask: Ask) -> Reply:
        return _atom(board, world, "")

    @hot.form("drift")
    def only_updated(world: World, ask: Ask) -> Reply:
        """Return posts without the time of publication, only with that of the last change."""
        entries = "".join(_entry(board, item) for item in list_headlines(world, board, 50))
        return _atom(board, world, entries.replace("<published>", "<first>").replace("</published>", "</first>"))

    @hot.form("geo")
    def blocked(world: World, ask: Ask) -> Reply:
        return Reply.text(REFUSAL, 403, "text/html")

    @hot.form("limited")
    def too_many(world: World, ask: Ask) -> Reply:
        return Reply.text(REFUSAL, 429, "text/html", headers={"Retry-After": "60"})


def _entry(board: str, item: SimHeadline) -> str:
    stamp = _iso(item.at)
    dated = f"<updated>{stamp}</updated><published>{stamp}</published>" if item.dated else ""
    return (
        "<entry><author><name>/u/somebody</name><uri>https://www.reddit.com/user/somebody</uri></author>"
        f'<category term="{board}" label="r/{board}"/><content type="html">&lt;p&gt;A post&lt;/p&gt;</content>'
        f"<id>t3_{abs(item.origin):x}</id><link href={quoteattr(item.url)} />{dated}"
        f"<title>{escape(item.title)}</title></entry>"
    )


def _atom(board: str, world: World, entries: str) -> Reply:
    body = (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"'
        f' xmlns:media="http://search.yahoo.com/mrss/"><category term="{board}" label="r/{board}"/>'
        f"<updated>{_iso(world.now)}</updated><id>/r/{board}/hot/.rss</id>"
        f'<link rel="self" href="https://{HOST}/r/{board}/hot/.rss" type="application/atom+xml" />'
        f"<title>hot posts: {board}</title>{entries}</feed>"
    )
    return Reply(body.encode(), content_type="application/atom+xml; charset=UTF-8")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")


for name in ("CryptoCurrency", "wallstreetbets", "stocks", "investing"):
    _serve(name)
