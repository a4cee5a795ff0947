"""Writes `/status.atom`: an Atom feed (RFC 4287) of the times when a source went down or came back."""

from typing import Any
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape, quoteattr

from toolserver.registry.site_facts import ATOM, SERVICE, STATUS, STATUS_FEED, Document, SiteFacts

WORDS = {"down": "is down", "back": "is back"}
EXPLAINED = {
    "down": "Three exchanges in a row failed; the last error was: {}. Tools answer from other sources, or from the last"
    " good data, marked stale.",
    "back": "The source answers again.",
}


def write_feed(facts: SiteFacts, status: dict[str, Any]) -> Document:
    """Return the feed of the changes in `status`. Without any change, its date is the start of the service."""
    changes = status["changes"]
    updated = changes[0]["at"] if changes else status["service"]["started_at"]
    entries = "".join(_write_entry(facts, change) for change in changes)
    itself, page = quoteattr(facts.url(STATUS_FEED)), quoteattr(facts.url(STATUS))
    body = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{SERVICE}: changes of sources</title>\n<id>{escape(facts.url(STATUS_FEED))}</id>\n"
        f"<updated>{updated}</updated>\n<author><name>{SERVICE}</name></author>\n"
        f'<link rel="self" type="application/atom+xml" href={itself}/>\n'
        f'<link rel="alternate" type="text/html" href={page}/>\n{entries}</feed>\n'
    )
    return Document(body.encode(), ATOM)


def _write_entry(facts: SiteFacts, change: dict[str, Any]) -> str:
    source, kind, at = change["source"], change["kind"], change["at"]
    host = urlsplit(facts.base_url).hostname or SERVICE
    identity = f"tag:{host},{at[:10]}:{STATUS}/{quote(source)}/{kind}/{at[11:]}"
    place = quoteattr(f"{facts.url(STATUS)}#{quote(source)}")
    return (
        f"<entry>\n<title>{escape(source)} {WORDS[kind]}</title>\n<id>{escape(identity)}</id>\n"
        f"<updated>{at}</updated>\n<link href={place}/>\n"
        f"<summary>{escape(EXPLAINED[kind].format(change['reason']))}</summary>\n</entry>\n"
    )
