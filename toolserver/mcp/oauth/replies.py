"""Send OAuth's HTTP answers: documents, redirects, and pages that nobody may frame, store or inject code into."""

from typing import Any

import msgspec

from toolserver.mcp.asgi import Header, Scope, Send

NO_STORE: Header = (b"cache-control", b"no-store")
CORS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
    (b"access-control-expose-headers", b"www-authenticate, retry-after"),
)
DOCUMENT_AGE: Header = (b"cache-control", b"public, max-age=3600")


class OAuthReplies:
    """Sends answers with the headers common to all of them. `secure`: the service is reached over https."""

    def __init__(self, *, secure: bool) -> None:
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
