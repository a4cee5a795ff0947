"""Read parameters of OAuth requests, each given at most once, from a query or a form of limited size."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from toolserver.core.http_body import BodyTooLarge, read_body, request_pieces
from toolserver.errors import ToolserverError
from toolserver.mcp.asgi import Receive, Scope

MOST_FORM, MOST_FIELDS = 16 * 1024, 40
FORM_TYPE = "application/x-www-form-urlencoded"
RESOURCE_FIELD = "resource"  # the one parameter that may be given several times (RFC 8707, 2)


class BadParameters(ToolserverError):
    """The parameters cannot be read. The text quotes no value."""


class OAuthParameters(dict[str, str]):
    """Parameters by name; an empty one counts as absent (RFC 6749, 3.1). `resources` has every `resource`."""

    resources: tuple[str, ...] = ()


def read_parameters(encoded: bytes) -> OAuthParameters:
    """Return the parameters of a query or a form. Raises BadParameters."""
    try:
        pairs = parse_qsl(encoded.decode("ascii"), max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise BadParameters("The parameters are not form-encoded UTF-8, or there are too many.") from None
    found = OAuthParameters()
    for name, value in pairs:
        if name in found and name != RESOURCE_FIELD:
            raise BadParameters("A parameter is given more than once.")
        found[name] = value
    found.resources = tuple(value for name, value in pairs if name == RESOURCE_FIELD)
    return found


async def read_form(scope: Scope, receive: Receive) -> OAuthParameters:
    """Return the parameters of a posted form. Raises BadParameters."""
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise BadParameters(f"Send Content-Type: {FORM_TYPE}.")
    return read_parameters(await read_bytes(receive))


async def read_bytes(receive: Receive) -> bytes:
    """Read a body of limited size. Raises BadParameters."""
    try:
        return await read_body(request_pieces(receive), MOST_FORM)
    except BodyTooLarge:
        raise BadParameters(f"The body may have at most {MOST_FORM} bytes.") from None


def add_basic_credentials(found: OAuthParameters, headers: Mapping[bytes, bytes]) -> None:
    """Add the client of an Authorization header to the parameters of a form. Raises BadParameters."""
    scheme, _, encoded = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() != "basic":
        return
    try:
        id, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise BadParameters("The Authorization header does not identify a client.") from None
    id, secret = unquote_plus(id), unquote_plus(secret)
    if not colon or "client_secret" in found or found.get("client_id", id) != id:
        raise BadParameters("A client must identify itself only once: in the header or in the form.")
    found["client_id"] = id
    if secret:
        found["client_secret"] = secret


def header_of(scope: Scope, name: bytes) -> str:
    """Return a request header as text; empty if it is absent."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def cookies_of(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request."""
    pairs: list[Any] = [part.partition("=") for part in header_of(scope, b"cookie").split(";")]
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}
