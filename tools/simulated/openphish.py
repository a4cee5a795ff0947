"""Simulate OpenPhish's community feed on the wire: three hundred URLs, renewed twice a day."""

from toolserver.world.model import Ask, Reply, World, serves

LINES = 300
EVERY_S = 43200.0
LURES = ["login-bank", "parcel-fee", "free-coins", "mail-quota"]


def phishing_urls(world: World) -> list[str]:
    """Return URLs, newest first, only on names reserved for documentation."""
    last = int(world.now // EVERY_S) * 60
    return [_url(world, index) for index in range(last, last - LINES, -1)]


def _url(world: World, index: int) -> str:
    lure, scheme = world.pick("openphish.lure", index, LURES), world.pick("openphish.scheme", index, ["http", "https"])
    path = world.pick("openphish.path", index, ["", "?naps&copy=2", "index.html?to=a@b.example"])
    return f"{scheme}://www.{lure}-{index}.phish.example/{path}"


FORMS = {
    "empty": Reply.text("\n"),
    "error200": Reply.text("The feed has moved. Please see our terms of use.\n" * 20),
}


@serves("OpenPhish.feed", "raw.githubusercontent.com", "/openphish/public_feed/refs/heads/main/feed.txt", forms=FORMS)
def feed(world: World, ask: Ask) -> Reply:
    text = "\n".join(phishing_urls(world)) + "\n"
    return Reply.text(text, last_modified=world.now // EVERY_S * EVERY_S)
