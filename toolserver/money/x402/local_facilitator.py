"""Runs the official facilitator on this machine only, with the key of an account that holds a little ether for fees.

Needs the extra `x402`. It moves USDC only as payers have signed, and to the payee that they
have signed for; the account can lose no more than its ether. The official code blocks, so it
runs in threads, one settlement at a time.
"""

import importlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from toolserver.core.http import BodyTooLarge, read_body, request_pieces
from toolserver.core.import_guard import recursion_limit_kept
from toolserver.money.purchases.offline_key import KeyRefused, read_key_file, read_private_key
from toolserver.money.purchases.units import NETWORK

log = logging.getLogger(__name__)

MOST_BYTES = 65_536
CONFIRM_S = 15.0
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class NotInstalled(Exception):
    """The extra `x402` is not installed."""


def key_from(path: Path) -> str:
    """Return the private key (hexadecimal) in a file. Raises KeyRefused, also if others than its owner can read it."""
    text = read_key_file(path)
    try:
        return read_private_key(text).to_hex()
    except KeyRefused as refused:
        raise KeyRefused(f"{path}: {refused}") from None


def official(rpc: str, key: str) -> Any:
    """Return the official facilitator for `exact` on Base. Raises NotInstalled."""
    try:
        with recursion_limit_kept():
            x402: Any = importlib.import_module("x402")
            evm: Any = importlib.import_module("x402.mechanisms.evm")
            exact: Any = importlib.import_module("x402.mechanisms.evm.exact")
    except ImportError:
        raise NotInstalled("the facilitator needs the extra x402: in a checkout, run pip install '.[x402]'") from None
    signer = evm.FacilitatorWeb3Signer(private_key=key, rpc_url=rpc, confirmation_timeout_seconds=CONFIRM_S)
    facilitator = x402.x402FacilitatorSync()
    facilitator.register([NETWORK], exact.ExactEvmFacilitatorScheme(signer))
    return facilitator


class LocalFacilitator:
    """The facilitator as an ASGI callable: POST /verify, POST /settle, GET /supported."""

    def __init__(self, facilitator: Any) -> None:
        self._facilitator = facilitator
        self._schemas: Any = importlib.import_module("x402.schemas")
        self._settling = anyio.Lock()  # the account's transactions are numbered consecutively

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            status, said = await self._answer(scope["method"], scope["path"], receive)
            await _send(send, status, said)
        elif scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})

    async def _answer(self, method: str, path: str, receive: Receive) -> tuple[int, Any]:
        if (method, path) == ("GET", "/supported"):
            return 200, _to_json(self._facilitator.get_supported())
        if method != "POST" or path not in ("/verify", "/settle"):
            return 404, {"error": "the routes are POST /verify, POST /settle and GET /supported"}
        try:
            body = msgspec.json.decode(await read_body(request_pieces(receive), MOST_BYTES))
            payment = self._schemas.PaymentPayload.model_validate(body["paymentPayload"])
            requirement = self._schemas.PaymentRequirements.model_validate(body["paymentRequirements"])
        except (BodyTooLarge, msgspec.MsgspecError, ValueError, LookupError, TypeError, RecursionError):
            return 400, {"error": "not a payment of version 2 with its requirements"}
        return await self._do(path, payment, requirement)

    async def _do(self, path: str, payment: Any, requirement: Any) -> tuple[int, Any]:
        facilitator = self._facilitator
        try:
            if path == "/verify":
                return 200, _to_json(await anyio.to_thread.run_sync(facilitator.verify, payment, requirement))
            async with self._settling:
                return 200, _to_json(await anyio.to_thread.run_sync(facilitator.settle, payment, requirement))
        except self._schemas.SchemeNotFoundError:
            return 400, {"error": "only the scheme exact on Base is supported"}
        except Exception:
            log.exception("the official facilitator failed", extra={"path": path})
            return 500, {"error": "something went wrong"}


def _to_json(said: Any) -> Any:
    return said.model_dump(mode="json", by_alias=True, exclude_none=True)


async def _send(send: Send, status: int, said: Any) -> None:
    body = msgspec.json.encode(said)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
