"""Check redirect addresses: which a client may register, which match a registered one, and how people see them.

Addresses are compared character by character. Only a program on the person's own machine may send another port than
the registered one, because its system assigns a free port each time (RFC 8252, 7.3).
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
    """An address to which no browser may be sent with a code."""


class RedirectTarget(NamedTuple):
    """Where a person is sent, in words for that person, and the source that a page's policy must allow."""

    shown: str
    local: bool
    source: str


def check_redirect_uri(uri: str) -> None:
    """Raise RedirectRefused for an address that a client may not register."""
    if not uri.isascii() or not uri.isprintable() or " " in uri or len(uri) > MOST_URI or "\\" in uri:
        raise RedirectRefused(f"a redirect URI must be printable ASCII of at most {MOST_URI} characters")
    parts = _split(uri)
    if "#" in uri or "@" in parts.netloc:
        raise RedirectRefused("a redirect URI must not have a fragment or a user name")
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        if not _HOST.fullmatch(parts.hostname or ""):
            raise RedirectRefused("a redirect URI must name a host")
    elif parts.scheme == "http":
        raise RedirectRefused("a redirect URI must use https, except on loopback")
    elif parts.scheme in _BROWSERS_OWN or not _SCHEME.fullmatch(parts.scheme) or not uri[len(parts.scheme) :][1:]:
        raise RedirectRefused("a redirect URI must use https, http on loopback, or an app's own scheme")


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Return True if an address is one that the client registered."""
    return any(uri == known or _without_port(uri) == _without_port(known) != "" for known in registered)


def describe_redirect(uri: str) -> RedirectTarget:
    """Describe where an address leads that `check_redirect_uri` has accepted."""
    parts = _split(uri)
    if parts.scheme not in ("http", "https"):
        return RedirectTarget(f"an app on this device ({parts.scheme}:)", True, f"{parts.scheme}:")
    source = f"{parts.scheme}://{parts.netloc.lower()}"
    if parts.hostname in _LOOPBACK:
        return RedirectTarget(f"a program on this device ({parts.netloc})", True, source)
    return RedirectTarget(parts.netloc.lower(), False, source)


def _split(uri: str) -> SplitResult:
    """Split an address into its parts. Raises RedirectRefused."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        raise RedirectRefused("this is not a URI") from None
    return parts


def _without_port(uri: str) -> str:
    """Return an address on loopback without its port; empty for any other address."""
    try:
        parts = _split(uri)
    except RedirectRefused:
        return ""
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK or "@" in parts.netloc or "\\" in uri:
        return ""
    return parts._replace(netloc=parts.hostname).geturl()
