"""Has a facilitator check and make payments over HTTP, so that this service needs neither a key nor ether.

A facilitator may be slow, down, wrong, or lie. So each of its responses is read in one of
three ways: the payment was made, it was certainly not made, or it is not known. Only a
payment that cannot have reached the chain counts as not made.
"""

import logging
from typing import Any

import anyio
import msgspec

from toolserver.core.http import BodyTooLarge, BodyUnreadable, read_response
from toolserver.core.http_library import httpx
from toolserver.core.outbound import NO_PROXIES, Proxies, make_client
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402 import wire
from toolserver.money.x402.wire import FacilitatorDown, SettleAnswer

log = logging.getLogger(__name__)

MOST_BYTES = 65_536
CONNECT_S = 2.0
UNSENT = (
    httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError
)  # fmt: skip
_REFUSED = (400, 401, 403, 404, 405, 413, 415, 422, 429)
_JUDGED = ("invalid_", "insufficient_", "unsupported_", "missing_", "network_mismatch", "asset_", "eip6492_")
_LATER = ("invalid_transaction_state", "invalid_exact_evm_transfer_event_mismatch")  # judged after it was on the chain


class _Verdict(msgspec.Struct, frozen=True):
    isValid: bool
    invalidReason: str | None = None
    payer: str | None = None


class _Outcome(msgspec.Struct, frozen=True):
    success: bool
    transaction: str = ""
    network: str = ""
    errorReason: str | None = None
    payer: str | None = None


class _Kind(msgspec.Struct, frozen=True):
    scheme: str
    network: str
    x402Version: int = 0


class _Supported(msgspec.Struct, frozen=True):
    kinds: list[_Kind]


class Facilitator:
    """One facilitator. The first request connects to it."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        verify_s: float = 5,
        settle_s: float = 20,
        connect_s: float = CONNECT_S,
        transport: httpx.AsyncBaseTransport | None = None,
        proxies: Proxies = NO_PROXIES,
    ) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = make_client(url, proxies, transport=transport, headers=headers)
        self._verify_s, self._settle_s, self._connect_s = verify_s, settle_s, connect_s

    async def verify(self, payment: dict[str, Any], requirement: dict[str, Any], payer: str) -> str | None:
        """Return why a payment is not valid, as an x402 error code, or None if it is valid. Raises FacilitatorDown."""
        status, body = await self._exchange("/verify", _request(payment, requirement), self._verify_s)
        said = _read(body, _Verdict) if status == 200 else None
        if said is None or (said.isValid and _is_other(said.payer, payer)):
            raise FacilitatorDown(f"verify: status {status}, no usable answer")
        return None if said.isValid else _clean_reason(said.invalidReason)

    async def settle(self, payment: dict[str, Any], requirement: dict[str, Any], payer: str) -> SettleAnswer:
        """Have a payment made. Raises FacilitatorDown if it was certainly not made."""
        try:
            status, body = await self._exchange("/settle", _request(payment, requirement), self._settle_s)
        except _Unheard as unheard:
            log.warning("the facilitator gave no usable response to a settlement", extra={"reason": str(unheard)})
            return SettleAnswer("pending")
        if status in _REFUSED:
            raise FacilitatorDown(f"settle: status {status}")
        said = _read(body, _Outcome) if status == 200 else None
        if said is None:
            log.warning("the facilitator answered a settlement with an unexpected response", extra={"status": status})
            return SettleAnswer("pending")
        return _judge_answer(said, payer)

    async def supported(self) -> bool:
        """Return True if the facilitator supports our scheme, network and version. Raises FacilitatorDown."""
        status, body = await self._exchange("/supported", None, self._verify_s)
        said = _read(body, _Supported) if status == 200 else None
        if said is None:
            raise FacilitatorDown(f"supported: status {status}, no usable answer")
        ours = (wire.SCHEME, NETWORK, wire.VERSION)
        return any((kind.scheme, kind.network, kind.x402Version) == ours for kind in said.kinds)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _exchange(self, path: str, body: bytes | None, within_s: float) -> tuple[int, bytes]:
        """Return status and body of the response, within `connect_s` + `within_s` seconds.

        Raises FacilitatorDown if the request was not sent, and _Unheard if it was and no usable response came.
        """
        headers = {"content-type": "application/json"} if body else {}
        request = self._client.build_request("POST" if body else "GET", path, content=body, headers=headers)
        try:
            with anyio.fail_after(self._connect_s + within_s):
                response = await self._client.send(request, stream=True)
                try:
                    return response.status_code, await read_response(response, MOST_BYTES)
                finally:
                    await response.aclose()
        except UNSENT as error:
            raise FacilitatorDown(type(error).__name__) from None
        except (httpx.HTTPError, TimeoutError, BodyTooLarge, BodyUnreadable) as error:
            raise _Unheard(type(error).__name__) from None


class _Unheard(FacilitatorDown):
    """The request was sent, and no usable response came: it may or may not have been carried out."""


def _request(payment: dict[str, Any], requirement: dict[str, Any]) -> bytes:
    said = {"x402Version": wire.VERSION, "paymentPayload": payment, "paymentRequirements": requirement}
    return msgspec.json.encode(said)


def _read(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _judge_answer(said: _Outcome, payer: str) -> SettleAnswer:
    """Return what a response to /settle means. A failure with a transaction may still turn out to be a success."""
    tx = wire.tx_hash(said.transaction)
    if said.success:
        if tx is None or said.network != NETWORK or _is_other(said.payer, payer):
            log.error(
                "the facilitator reports a payment as settled, but names no valid transaction, network or payer",
                extra={"network": said.network[:32]},
            )
            return SettleAnswer("pending", tx)
        return SettleAnswer("settled", tx)
    reason = _clean_reason(said.errorReason)
    before = reason.startswith(_JUDGED) and reason not in _LATER
    return SettleAnswer("failed", None, reason) if before and not said.transaction else SettleAnswer("pending", tx)


def _is_other(said: str | None, payer: str) -> bool:
    """Return True if the response names another payer."""
    return said is not None and said.lower() != payer.lower()


def _clean_reason(reason: str | None) -> str:
    """Return the facilitator's reason if it has the form of an error code, otherwise `invalid_payload`."""
    fits = reason and len(reason) <= 96 and reason.isascii() and reason.replace("_", "").isalnum()
    return str(reason) if fits else "invalid_payload"
