"""Decide which requests are read at all, by host, origin, media types and choice of tools."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from toolserver.mcp.asgi import Headers, Scope
from toolserver.mcp.definitions import ToolChoice, ToolChoices, UnknownToolChoice
from toolserver.mcp.errors import MessageRefusal
from toolserver.mcp.messages import INVALID_PARAMS, INVALID_REQUEST
from toolserver.settings import is_loopback

VERDICTS = 512
VERDICT_BYTES = 1024
_JSON = ("application/json", "application/*", "*/*")


class RequestGuard:
    """Admits requests. The decision is cached by the headers that it depends on.

    A server on this machine answers only to names of this machine. Otherwise a web page elsewhere could point its own
    name here (DNS rebinding). A public server has nothing to protect from that: it uses no cookies.
    """

    def __init__(
        self,
        choices: ToolChoices,
        *,
        base_url: str,
        allowed_hosts: Iterable[str] = (),
        allowed_origins: Iterable[str] = (),
    ) -> None:
        own = urlsplit(base_url).hostname or "localhost"
        self._guarded = is_loopback(own)
        self._hosts = {"localhost", "127.0.0.1", "::1", own, *(host.lower() for host in allowed_hosts)}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in allowed_origins)
        self._choices = choices
        self._verdicts: dict[tuple[bytes | None, ...], ToolChoice] = {}

    def admit(self, scope: Scope, headers: Headers, *, has_token: bool) -> ToolChoice:
        """Return what this client sees. `has_token`: the connection itself carries a token.

        Raises:
            MessageRefusal: the request is not admitted.
        """
        get = headers.get
        key = (
            scope["query_string"],
            get(b"content-type"),
            get(b"accept"),
            get(b"host"),
            get(b"origin"),
            get(b"x-mcp-tools"),
            get(b"x-mcp-toolset"),
            b"token" if has_token else None,
        )
        return self._verdicts.get(key) or self._judge(key)

    def _judge(self, key: tuple[bytes | None, ...]) -> ToolChoice:
        query, content_type, accept, host, origin, tools, toolset, token = key
        self.check_source(host, origin)
        if not _media(content_type or b"")[0] == "application/json":
            raise MessageRefusal(415, INVALID_REQUEST, "Send `Content-Type: application/json`.")
        if accept is not None and not any(kind in _JSON for kind in _media(accept)):
            raise MessageRefusal(
                406, INVALID_REQUEST, "Answers are `application/json`: the Accept header must allow it."
            )
        choice = self.choose(query or b"", toolset, tools, token_argument=token is None)
        if sum(len(part) for part in key if part is not None) <= VERDICT_BYTES:
            if len(self._verdicts) >= VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = choice
        return choice

    def choose(
        self, query: bytes, toolset: bytes | None, tools: bytes | None, *, token_argument: bool = False
    ) -> ToolChoice:
        """Return the choice of tools. Raises MessageRefusal, which names the valid ones."""
        try:
            return self._choices.choose_by_request(query, toolset, tools, token_argument=token_argument)
        except UnknownToolChoice as unknown:
            raise MessageRefusal(400, INVALID_PARAMS, str(unknown), data=unknown.data) from None

    def check_source(self, host: bytes | None, origin: bytes | None) -> None:
        """Raise MessageRefusal if the host or the origin is foreign to a server on this machine."""
        if not self._guarded:
            return
        if not self._ours(f"//{_text(host)}"):
            raise MessageRefusal(421, INVALID_REQUEST, "This server does not answer to that host name.")
        given = _text(origin).rstrip("/")
        if origin is not None and given not in self._origins and not self._ours(given):
            raise MessageRefusal(403, INVALID_REQUEST, "Pages from that origin may not call this server.")

    def _ours(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        return parts.scheme in ("", "http", "https") and (parts.hostname in self._hosts or parts.netloc in self._hosts)


def _text(value: bytes | None) -> str:
    return (value or b"").decode("latin-1").strip().lower()


def _media(value: bytes) -> list[str]:
    """Return the media types of a header, without their parameters."""
    return [kind.partition(";")[0].strip() for kind in _text(value).split(",")]
