"""Defines the steps of a client's conversation with a service, without doing I/O.

Each method is a generator: it yields a request and receives the response, or yields seconds
to wait. One client runs these steps with blocking calls, the other with `await`, and neither
needs to know their purpose.
"""

import difflib
import random
import re
import secrets
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

from toolserver.client.answer import ToolAnswer, read_json, read_rejection
from toolserver.core.caller import real_token
from toolserver.core.http import HttpAnswer, Unreachable
from toolserver.core.http_library import httpx
from toolserver.core.public_address import is_local_host
from toolserver.errors import CallRejected, ChainUnavailable, InternalError, NotFound, PaymentPending

if TYPE_CHECKING:
    from toolserver.money.receipts.keys import Key

T = TypeVar("T")

ROUTES = "/api/llm-tools?format=routes"
RECEIPT_KEYS = "/.well-known/service-receipt-keys.json"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ROUTE = re.compile(r"/(?:[A-Za-z0-9._~/-]|\{[a-z0-9_]+\})*")  # after an origin, it cannot change the origin
CONFIRM_S = 5.0  # between two checks for a payment, if the service does not say


class HttpRequest(NamedTuple):
    """A request, for httpx."""

    method: str
    url: str
    params: Mapping[str, Any] = {}
    json: Any = None
    headers: Mapping[str, str] = {}


Steps: TypeAlias = Generator[HttpRequest | float, HttpAnswer | None, T]
"""Yields requests, which get a response, and seconds to wait; returns the result. Unreachable may be thrown in."""


class ClientSteps:
    """The state of a client: the token, and, once loaded, the routes of the tools and the keys of receipts.

    A failed call is retried at most `retries` times, if it cannot be carried out twice, as
    long as the pauses take no more than `patience_s`.
    """

    def __init__(self, base_url: str, token: str | None, *, retries: int, patience_s: float) -> None:
        self.base_url = base_url.removesuffix("/api/mcp").rstrip("/")
        self.token = real_token(token)
        self.retries, self.patience_s = retries, patience_s
        self._routes: dict[str, Any] | None = None
        self._keys: dict[str, Key] = {}
        parts = urlsplit(self.base_url)
        self._may_send_token = parts.scheme == "https" or is_local_host(parts.hostname or "")
        if self.token is not None and not self._may_send_token:
            raise ValueError(f"{base_url} does not begin with https://, so the token would be sent unencrypted")

    def call(
        self, name: str, arguments: Mapping[str, Any], *, idempotency_key: str | None = None, is_safe: bool = False
    ) -> Steps[ToolAnswer[Any]]:
        """Call a tool. `is_safe` says that a POST may be sent twice without being carried out twice.

        Raises:
            CallRejected, Unreachable.
        """
        route = yield from self._find_route(name)
        ask = self._ask_for(route, arguments, idempotency_key or secrets.token_hex(16))
        answer = yield from self._repeat(ask, is_safe=is_safe or ask.method != "POST")
        return ToolAnswer(read_json(answer), answer.body, answer.headers)

    def confirm(self, tx_hash: str, memo: str, *, within_s: float) -> Steps[ToolAnswer[Any]]:
        """Claim the token of a payment, waiting up to `within_s` seconds for the chain, and use it for later calls."""
        waited, arguments = 0.0, {"tx_hash": tx_hash, "nonce": memo}
        while True:
            try:
                answer = yield from self.call("payment_confirm", arguments, is_safe=True)
            except (PaymentPending, ChainUnavailable) as pending:
                pause = pending.retry_after_s or CONFIRM_S
                if waited + pause > within_s:
                    raise
                waited += pause
                yield pause
            else:
                self.token = _read_token(answer.payload)
                return answer

    def check_receipt(self, answer: ToolAnswer[Any]) -> Steps[dict[str, Any]]:
        """Verify an answer's receipt locally, with the published keys: its signature, its time, the hash of the body.

        Returns `{valid, checks, key_id, core, error?}` as `receipt_verify` does. Raises ValueError if there is none.
        """
        import hashlib

        from toolserver.money.receipts.verify import Unreadable, parse_receipt, verdict

        if answer.receipt is None:
            raise ValueError("only a paid answer has a receipt")
        try:
            yield from self._find_key(parse_receipt(answer.receipt).kid)
        except Unreadable:
            pass  # the verdict says so
        return verdict(answer.receipt, self._keys.get, body_sha256=hashlib.sha256(answer.body).hexdigest())

    def _find_key(self, kid: str) -> Steps[None]:
        """Request the keys, unless this one is already known."""
        from toolserver.money.receipts.keys import parse_keys

        if kid not in self._keys:
            answer = yield from self._repeat(HttpRequest("GET", self.base_url + RECEIPT_KEYS), is_safe=True)
            self._keys = {key.kid: key for key in parse_keys(read_json(answer))}

    def _find_route(self, name: str) -> Steps[dict[str, Any]]:
        if self._routes is None:
            answer = yield from self._repeat(HttpRequest("GET", self.base_url + ROUTES), is_safe=True)
            listing: dict[str, Any] = read_json(answer)
            routes = listing.get("routes")
            if not isinstance(routes, dict):
                raise Unreachable("a list of tools without routes: this answer is not from the service")
            self._routes = routes
        if name not in self._routes:
            near = difflib.get_close_matches(name, self._routes, n=3)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise NotFound(f"The service has no tool called {name}{meant}", did_you_mean=near)
        route: dict[str, Any] = self._routes[name]
        self._check_route(name, route)
        return route

    def _check_route(self, name: str, route: Any) -> None:
        """Raise Unreachable for a route that leads elsewhere than to this service, where the token would go along."""
        path = route.get("path") if isinstance(route, dict) else None
        is_whole = isinstance(path, str) and _ROUTE.fullmatch(path) and isinstance(route.get("arguments"), dict)
        if not is_whole or route.get("method") not in _METHODS or not isinstance(route.get("auth"), str):
            raise Unreachable(f"the service lists {name} under an address that is not its own")

    def _ask_for(self, route: Mapping[str, Any], arguments: Mapping[str, Any], key: str) -> HttpRequest:
        """Return the request. Unknown arguments are sent too, so that the service can explain what is wrong."""
        path, query, body = str(route["path"]), {}, {}
        elsewhere = "body" if route["method"] in ("POST", "PATCH") else "query"
        for name, value in arguments.items():
            if value is None:
                continue
            place = route["arguments"].get(name, elsewhere)
            if place == "path":
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            elif place == "query":
                query[name] = _write(value)
            else:
                body[name] = value
        headers = {}
        if self.token is not None and self._may_send_token:
            headers = {"authorization": f"Bearer {self.token}"}
            headers |= {"idempotency-key": key} if route["auth"] == "bearer" else {}
        return HttpRequest(route["method"], self.base_url + path, query, body or None, headers)

    def _repeat(self, ask: HttpRequest, *, is_safe: bool) -> Steps[HttpAnswer]:
        """Send a request, with retries if they help, until it succeeds. Raise CallRejected, Unreachable."""
        waited = 0.0
        for attempt in range(self.retries + 1):
            failure: CallRejected | Unreachable
            try:
                answer = yield ask
                assert answer is not None
                if answer.status < 400:
                    return answer
                failure = read_rejection(answer)
            except Unreachable as error:
                failure = error
            pause = _pause_after(failure, attempt, is_safe=is_safe)
            if pause is None or attempt == self.retries or waited + pause > self.patience_s:
                raise failure
            waited += pause
            yield pause
        raise AssertionError("the last attempt returns or raises")


def _read_token(payload: Mapping[str, Any]) -> str:
    """Return the token that was bought. Raise Unreachable if there is none."""
    token = payload.get("token")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise Unreachable("a purchase without a token: this answer is not from the service")
    return token


def _pause_after(failure: CallRejected | Unreachable, attempt: int, *, is_safe: bool) -> float | None:
    """Return the seconds until a retry may succeed, or None if it will not or might be carried out twice."""
    if isinstance(failure, CallRejected) and not isinstance(failure, InternalError):
        is_early = failure.status in (402, 429, 503)
        return failure.retry_after_s if is_early else None
    was_sent = not isinstance(failure.__cause__, httpx.ConnectError | httpx.ConnectTimeout)
    return 0.25 * 2**attempt * (1 + random.random()) if is_safe or not was_sent else None


def _write(value: Any) -> str:
    """Return a value as it is written in a query string."""
    if isinstance(value, list | tuple):
        return ",".join(map(_write, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
