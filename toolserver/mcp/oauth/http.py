"""Read OAuth requests and send their answers, in the forms that OAuth prescribes and browsers need.

Parameters come from a query or a form of limited size, each at most once. Pages can be
neither framed nor stored, and no code can be injected into them.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from toolserver.calls.rate_limit import ClientBuckets, Quota
from toolserver.clock import Clock
from toolserver.core.caller import Addresses
from toolserver.core.cookies import header_of
from toolserver.core.http import BodyTooLarge, read_body, request_pieces
from toolserver.errors import ToolserverError
from toolserver.mcp.asgi import Header, Receive, Scope, Send

MOST_FORM, MOST_FIELDS = 16 * 1024, 40
FORM_TYPE = "application/x-www-form-urlencoded"
RESOURCE_FIELD = "resource"  # the one parameter that may be given several times (RFC 8707, 2)
NO_STORE: Header = (b"cache-control", b"no-store")
CORS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
    (b"access-control-expose-headers", b"www-authenticate, retry-after"),
)
DOCUMENT_AGE: Header = (b"cache-control", b"public, max-age=3600")


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
    parameters = OAuthParameters()
    for name, value in pairs:
        if name in parameters and name != RESOURCE_FIELD:
            raise BadParameters("A parameter is given more than once.")
        parameters[name] = value
    parameters.resources = tuple(value for name, value in pairs if name == RESOURCE_FIELD)
    return parameters


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


def add_basic_credentials(parameters: OAuthParameters, headers: Mapping[bytes, bytes]) -> None:
    """Add the client of an Authorization header to the parameters of a form. Raises BadParameters."""
    scheme, _, encoded = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() != "basic":
        return
    try:
        id, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise BadParameters("The Authorization header does not identify a client.") from None
    id, secret = unquote_plus(id), unquote_plus(secret)
    if not colon or "client_secret" in parameters or parameters.get("client_id", id) != id:
        raise BadParameters("A client must identify itself only once: in the header or in the form.")
    parameters["client_id"] = id
    if secret:
        parameters["client_secret"] = secret


class ExceededQuota(NamedTuple):
    """A quota that an address has used up, and after how many seconds it may send again."""

    name: str
    retry_after_s: int


class Visitors:
    """Tells apart who sends requests, by address, and counts what each address sends.

    Unless `limited`, nothing is refused.
    """

    def __init__(self, addresses: Addresses, clock: Clock, *, limited: bool = True) -> None:
        self._addresses, self._clock, self.limited = addresses, clock, limited

    def find_address(self, scope: Scope) -> str:
        """Return the address that a request counts for."""
        peer = (scope.get("client") or ("unknown", 0))[0]
        return self._addresses.client(peer, header_of(scope, b"x-forwarded-for") or None)

    def find_sharer(self, scope: Scope) -> str | None:
        """Return the address that has a share of what is limited; None where nothing is."""
        return self.find_address(scope) if self.limited else None

    def open_buckets(self, quota: Quota) -> ClientBuckets:
        """Return buckets that count requests against a quota, one for each address."""
        return ClientBuckets(quota, monotonic=self._clock.monotonic)

    def count(self, scope: Scope, *quotas: ClientBuckets) -> ExceededQuota | None:
        """Count a request against quotas. Return the first that its address has used up; None if it may go on."""
        for buckets in quotas if self.limited else ():
            verdict = buckets.take(self.find_address(scope))
            if not verdict.allowed:
                return ExceededQuota(buckets.quota.name, max(1, int(verdict.retry_after_s + 0.999)))
        return None


class OAuthReplies:
    """Sends answers with the headers common to all of them. `secure`: the service is reached over https."""

    def __init__(self, *, secure: bool) -> None:
        self.secure = secure
        self.always: list[Header] = [(b"x-content-type-options", b"nosniff")]
        if secure:
            self.always.append((b"strict-transport-security", b"max-age=31536000"))

    async def document(self, scope: Scope, send: Send, body: bytes) -> None:
        """Send metadata, which every origin may read and cache for an hour."""
        headers = [(b"content-type", b"application/json"), DOCUMENT_AGE, *CORS]
        await self.send(scope, send, 200, body, headers)

    async def problem(self, scope: Scope, send: Send, status: int, error: str, text: str, *more: Header) -> None:
        """Send an error in OAuth's form, for programs."""
        body = msgspec.json.encode({"error": error, "error_description": text})
        await self.send(scope, send, status, body, [(b"content-type", b"application/json"), NO_STORE, *CORS, *more])

    async def options(self, scope: Scope, send: Send, methods: str) -> None:
        """Answer a browser's preflight request from another origin."""
        allowed = methods.encode()
        headers = [*CORS, (b"access-control-allow-methods", allowed), (b"allow", allowed)]
        await self.send(scope, send, 204, b"", [*headers, (b"access-control-max-age", b"86400")])

    async def redirect(self, scope: Scope, send: Send, url: str, *more: Header) -> None:
        """Send a browser elsewhere, by GET."""
        headers = [(b"location", url.encode("ascii")), NO_STORE, (b"referrer-policy", b"no-referrer"), *more]
        await self.send(scope, send, 303, b"", headers)

    async def page(self, scope: Scope, send: Send, status: int, body: bytes, target: str = "", *more: Header) -> None:
        """Send one of our pages. `target` is the source to which its form may redirect."""
        policy = (
            "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self';"
            f" base-uri 'none'; frame-ancestors 'none'; form-action 'self'{' ' + target if target else ''}"
        )
        headers: list[Header] = [
            (b"content-type", b"text/html; charset=utf-8"),
            NO_STORE,
            (b"content-security-policy", policy.encode("ascii")),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            *more,
        ]
        await self.send(scope, send, status, body, headers)

    async def send(self, scope: Scope, send: Send, status: int, body: bytes, headers: list[Header]) -> None:
        """Send an answer, or only its headers."""
        length: list[Header] = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": [*headers, *self.always, *length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def wrap(self, send: Send) -> Send:
        """Return a `send` for the SDK's answers, with the same headers and readable by every origin."""

        async def with_headers(event: Any) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": [*event.get("headers", ()), *CORS, *self.always]}
            await send(event)

        return with_headers
