"""Check redirect addresses: which a client may register, which match a registered one, and how people see them.

Addresses are compared character by character. Only a program on the person's own machine may
send another port than the registered one, because its system assigns a free port each time
(RFC 8252, 7.3).
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlencode, urlsplit

MOST_URI, MOST_URIS = 1000, 20
HOST_SCHEMES = frozenset(
    {
        *("claude", "cursor", "goose", "kiro", "lmstudio", "raycast", "trae"),
        *("vscode", "vscode-insiders", "vscodium", "warp", "windsurf", "zed"),
    }
)
"""The schemes of programs that use MCP servers. A machine has many others, which open what a stranger writes."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_REVERSED_DOMAIN = re.compile(r"(?=.{3,51}\Z)[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")  # RFC 8252, 7.1
_CHARACTERS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")  # those of RFC 3986, but for the fragment's mark
_ENCODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")  # a program may decode a line end before it reads the rest
_PLACE = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_ON_LOOPBACK = re.compile(r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?((?:[/?].*)?)")


class RedirectRefused(ValueError):
    """An address to which no browser may be sent with a code."""


class RedirectTarget(NamedTuple):
    """Where a person is sent, in words for that person, and the source that a page's policy must allow.

    `own_scheme`: the browser starts a program, so it goes there by a click of the person and never by itself.
    """

    shown: str
    local: bool
    source: str
    own_scheme: bool = False


def check_redirect_uri(uri: str) -> None:
    """Raise RedirectRefused for an address that a client may not register."""
    if len(uri) > MOST_URI or not _CHARACTERS.fullmatch(uri) or _ENCODED_CONTROL.search(uri):
        raise RedirectRefused(
            f"a redirect URI must be at most {MOST_URI} characters of a URI, without a fragment or encoded controls"
        )
    parts = _split(uri)
    if "@" in parts.netloc or not uri.startswith(f"{parts.scheme}:"):
        raise RedirectRefused("a redirect URI must not have a user name or capital letters in its scheme")
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        if not _PLACE.fullmatch(parts.netloc):
            raise RedirectRefused("a redirect URI must name a host")
    elif parts.scheme == "http":
        raise RedirectRefused("a redirect URI must use https, except on loopback")
    elif not _is_of_program(parts.scheme) or uri == f"{parts.scheme}:":
        raise RedirectRefused(
            "a redirect URI must use https, http on loopback, the scheme of a known host, or a reversed domain name"
            " (com.example.app:)"
        )


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Return True if an address is one that the client registered, and still may register."""
    try:
        check_redirect_uri(uri)
    except RedirectRefused:
        return False
    portless = _without_port(uri)
    return any(uri == each or (portless is not None and portless == _without_port(each)) for each in registered)


def describe_redirect(uri: str) -> RedirectTarget:
    """Describe where an address leads that `check_redirect_uri` has accepted."""
    parts = _split(uri)
    if parts.scheme not in ("http", "https"):
        return RedirectTarget(f"an app on this device ({parts.scheme}:)", True, f"{parts.scheme}:", True)
    source = f"{parts.scheme}://{parts.netloc.lower()}"
    if parts.hostname in _LOOPBACK:
        return RedirectTarget(f"a program on this device ({parts.netloc})", True, source)
    return RedirectTarget(parts.netloc.lower(), False, source)


def add_answer(uri: str, answer: Mapping[str, str], *, state: str | None, issuer: str) -> str:
    """Return a redirect address with an answer for the client, the state of its request and the issuer (RFC 9207)."""
    parameters = dict(answer)
    if state is not None:
        parameters["state"] = state
    parameters["iss"] = issuer
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def _split(uri: str) -> SplitResult:
    """Split an address into its parts. Raises RedirectRefused."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        raise RedirectRefused("this is not a URI") from None
    return parts


def _is_of_program(scheme: str) -> bool:
    return scheme in HOST_SCHEMES or _REVERSED_DOMAIN.fullmatch(scheme) is not None


def _without_port(uri: str) -> tuple[str, str] | None:
    """Return what stands before and after the port of an address on loopback; None for any other address.

    A parser is not used, because it drops white space and empty parts: two addresses would become one.
    """
    match = _ON_LOOPBACK.fullmatch(uri)
    return None if match is None else (match[1], match[2])
