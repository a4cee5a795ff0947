"""Provides the two clients: one with blocking calls, one for asyncio and trio."""

import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from toolserver import __version__
from toolserver.client.answer import ToolAnswer
from toolserver.client.steps import ClientSteps, HttpRequest, Steps
from toolserver.client.tools import AsyncTools, Tools
from toolserver.core.http import BodyTooLarge, HttpAnswer, Unreachable, read_body
from toolserver.core.http_library import httpx
from toolserver.core.outbound import make_tls_context

if TYPE_CHECKING:
    from toolserver.client.tools import PaymentBuyCreditsPayload, PaymentConfirmPayload

T = TypeVar("T")

TIMEOUT_S, PATIENCE_S, RETRIES, CONFIRM_WITHIN_S = 30.0, 10.0, 2, 900.0
MOST_BODY = 16 * 1024 * 1024  # bytes; the largest answer of the service has less than 1 MB
_HEADERS = {"accept": "application/json", "user-agent": f"toolserver-client/{__version__}"}


class ToolClient(Tools):
    """A client with blocking calls. Leave its block, or call `close`, to close its connections.

    `token` pays for tools that cost credits. A failed call is retried up to `retries` times
    if that is safe (paid calls carry an Idempotency-Key) and the pauses that the service
    requests take at most `patience_s` in total. `http` is an httpx client with your own
    proxies, certificates or timeouts.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        patience_s: float = PATIENCE_S,
        http: httpx.Client | None = None,
    ) -> None:
        self._steps = ClientSteps(base_url, token, retries=retries, patience_s=patience_s)
        self._http = http or httpx.Client(timeout=timeout_s, verify=_find_authorities(base_url))

    @property
    def token(self) -> str | None:
        """The bearer token that calls are made with; `confirm` and `buy` put the bought one here."""
        return self._steps.token

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> ToolAnswer[dict[str, Any]]:
        """Call a tool by its name. A paid call is charged once per `idempotency_key`, or once without a key.

        Raises:
            CallRejected, Unreachable.
        """
        return self._run(self._steps.call(name, arguments or {}, idempotency_key=idempotency_key))

    def buy(
        self,
        amount_usd: float,
        pay: "Callable[[PaymentBuyCreditsPayload], str]",
        *,
        within_s: float = CONFIRM_WITHIN_S,
    ) -> "ToolAnswer[PaymentConfirmPayload]":
        """Buy credits: `pay` gets the quote, sends the USDC, and returns the transaction hash.

        Raises:
            CallRejected, Unreachable.
        """
        quote = self.payment_buy_credits(amount_usd=amount_usd).payload
        return self.confirm(pay(quote), quote["memo"], within_s=within_s)

    def confirm(
        self, tx_hash: str, memo: str, *, within_s: float = CONFIRM_WITHIN_S
    ) -> "ToolAnswer[PaymentConfirmPayload]":
        """Claim the token of a payment, waiting up to `within_s` seconds for the chain, and use it for later calls.

        Raises:
            PaymentPending: the payment is not confirmed yet; repeat the same call later.
            CallRejected, Unreachable.
        """
        return self._run(self._steps.confirm(tx_hash, memo, within_s=within_s))

    def check_receipt(self, answer: ToolAnswer[Any]) -> dict[str, Any]:
        """Verify the receipt of a paid answer on this machine, against the published keys and the received bytes.

        Returns `{valid, checks, key_id, core, error?}`. Raises ValueError if the answer has no receipt.
        """
        return self._run(self._steps.check_receipt(answer))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> "ToolClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._take(step)
                except Unreachable as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    def _take(self, step: HttpRequest | float) -> HttpAnswer | None:
        if not isinstance(step, HttpRequest):
            time.sleep(step)
            return None
        try:
            with self._http.stream(**build_request(step)) as response:
                return read_response(response, keep_within_bounds(response.iter_bytes()))
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            raise Unreachable(describe_failure(failure)) from failure


class AsyncToolClient(AsyncTools):
    """The same as `ToolClient`, for asyncio or trio: every call is awaited."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        patience_s: float = PATIENCE_S,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._steps = ClientSteps(base_url, token, retries=retries, patience_s=patience_s)
        self._http = http or httpx.AsyncClient(timeout=timeout_s, verify=_find_authorities(base_url))

    @property
    def token(self) -> str | None:
        """The bearer token that calls are made with; `confirm` and `buy` put the bought one here."""
        return self._steps.token

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> ToolAnswer[dict[str, Any]]:
        """Do what `ToolClient.call` does."""
        return await self._run(self._steps.call(name, arguments or {}, idempotency_key=idempotency_key))

    async def buy(
        self,
        amount_usd: float,
        pay: "Callable[[PaymentBuyCreditsPayload], Awaitable[str]]",
        *,
        within_s: float = CONFIRM_WITHIN_S,
    ) -> "ToolAnswer[PaymentConfirmPayload]":
        """Do what `ToolClient.buy` does; `pay` is awaited."""
        quote = (await self.payment_buy_credits(amount_usd=amount_usd)).payload
        return await self.confirm(await pay(quote), quote["memo"], within_s=within_s)

    async def confirm(
        self, tx_hash: str, memo: str, *, within_s: float = CONFIRM_WITHIN_S
    ) -> "ToolAnswer[PaymentConfirmPayload]":
        """Do what `ToolClient.confirm` does."""
        return await self._run(self._steps.confirm(tx_hash, memo, within_s=within_s))

    async def check_receipt(self, answer: ToolAnswer[Any]) -> dict[str, Any]:
        """Do what `ToolClient.check_receipt` does."""
        return await self._run(self._steps.check_receipt(answer))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncToolClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._take(step)
                except Unreachable as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _take(self, step: HttpRequest | float) -> HttpAnswer | None:
        if not isinstance(step, HttpRequest):
            await anyio.sleep(step)
            return None
        try:
            async with self._http.stream(**build_request(step)) as response:
                return read_response(response, await read_body(response.aiter_bytes(), MOST_BODY))
        except BodyTooLarge as failure:
            raise Unreachable(f"the answer is larger than {MOST_BODY} bytes") from failure
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            raise Unreachable(describe_failure(failure)) from failure


def build_request(ask: HttpRequest) -> dict[str, Any]:
    """Return the arguments for httpx's `request`. Redirects are not followed, because they would carry the token."""
    more = {"params": ask.params} if ask.params else {}
    return {"method": ask.method, "url": ask.url, "json": ask.json, "headers": {**_HEADERS, **ask.headers}, **more}


def read_response(response: httpx.Response, body: bytes) -> HttpAnswer:
    """Return the response with the decoded body."""
    return HttpAnswer(response.status_code, response.headers, body)


def keep_within_bounds(pieces: Iterable[bytes]) -> bytes:
    """Return a whole body of at most `MOST_BODY` bytes. Raise Unreachable as soon as it is larger."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > MOST_BODY:
            raise Unreachable(f"the answer is larger than {MOST_BODY} bytes")
    return bytes(body)


def describe_failure(failure: Exception) -> str:
    """Return a transport failure as one line."""
    return f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__


def _find_authorities(base_url: str) -> ssl.SSLContext | bool:
    """Return what httpx verifies certificates with: the authorities of this machine, where TLS is used."""
    return make_tls_context() if base_url.startswith("https:") else True
