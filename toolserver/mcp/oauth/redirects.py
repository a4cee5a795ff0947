"""Redirect addresses: which a client may register, when one that it sends is the registered one, how people see them.

They are compared letter by letter. Only a program on the person's own machine may send another port than it
registered: it gets a free one from its system each time (RFC 8252, 7.3).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

MOST_URI, MOST_URIS = 1000, 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,50}")
_HOST = re.compile(r"[a-z0-9.-]{1,253}|[0-9a-f:.]{2,45}")
_BROWSERS_OWN = frozenset(
    {
        *("about", "blob", "chrome", "content", "data", "file", "filesystem", "ftp", "intent", "jar", "javascript"),
        *("livescript", "mailto", "mhtml", "mocha", "ms-its", "resource", "sms", "tel", "urn", "vbscript"),
        *("view-source", "wss", "ws", "x-javascript"),
    }
)


class RedirectRefused(ValueError):
    """An address that nobody may be sent to with a code."""


class RedirectTarget(NamedTuple):
    """Where a person is sent, for that person's eyes, and the source by which a page's policy allows it."""

    shown: str
    local: bool
    source: str


def check_redirect_uri(uri: str) -> None:
    """Raises RedirectRefused for an address that a client may not register."""
    if not uri.isascii() or not uri.isprintable() or " " in uri or len(uri) > MOST_URI or "\\" in uri:
        raise RedirectRefused(f"a redirect URI is printable ASCII of at most {MOST_URI} characters")
    parts = _split(uri)
    if "#" in uri or "@" in parts.netloc:
        raise RedirectRefused("a redirect URI has no fragment and no user name")
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        if not _HOST.fullmatch(parts.hostname or ""):
            raise RedirectRefused("a redirect URI names a host")
    elif parts.scheme == "http":
        raise RedirectRefused("a redirect URI is https, but on loopback")
    elif parts.scheme in _BROWSERS_OWN or not _SCHEME.fullmatch(parts.scheme) or not uri[len(parts.scheme) :][1:]:
        raise RedirectRefused("a redirect URI is https, http on loopback, or of an app's own scheme")


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether an address is one of those that the client registered."""
    return any(uri == known or _without_port(uri) == _without_port(known) != "" for known in registered)


def describe_redirect(uri: str) -> RedirectTarget:
    """Where an address leads that `check_redirect_uri` let through."""
    parts = _split(uri)
    if parts.scheme not in ("http", "https"):
        return RedirectTarget(f"an app on this device ({parts.scheme}:)", True, f"{parts.scheme}:")
    source = f"{parts.scheme}://{parts.netloc.lower()}"
    if parts.hostname in _LOOPBACK:
        return RedirectTarget(f"a program on this device ({parts.netloc})", True, source)
    return RedirectTarget(parts.netloc.lower(), False, source)


def _split(uri: str) -> SplitResult:
    """Raises RedirectRefused."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        raise RedirectRefused("this is no URI") from None
    return parts


def _without_port(uri: str) -> str:
    """An address on loopback without its port; empty for any other."""
    try:
        parts = _split(uri)
    except RedirectRefused:
        return ""
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK or "@" in parts.netloc or "\\" in uri:
        return ""
    return parts._replace(netloc=parts.hostname).geturl()
