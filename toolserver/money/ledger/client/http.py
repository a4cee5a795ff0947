"""Sends requests to the ledger's owner over HTTP: signed, with one retry and a circuit breaker."""

import hmac
import logging
import random
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import msgspec

from toolserver.clock import Clock
from toolserver.core.circuit_breaker import CircuitBreaker
from toolserver.core.http import HttpAnswer, HttpClient, Unreachable
from toolserver.errors import ToolserverError
from toolserver.money.ledger.client.messages import (
    CANARY,
    REPLY_SIGNATURE,
    VALIDATE,
    Validate,
    Validated,
    authorization,
    mac,
    reply_mac,
)
from toolserver.money.ledger.protocol import CallReused

log = logging.getLogger(__name__)

T = TypeVar("T")

TRY_S, TRIES = 2.0, 2
STEP_S = 4.5  # all tries of one step
PAUSE_S, PAUSE_SPREAD_S = 0.05, 0.1
GLANCE_S = 1.0  # between two checks whether a probe is due
CHECK_S = 30.0  # between two checks whether the owner accepts our requests


class OwnerRefusal(msgspec.Struct):
    """A reply with `ok: false`, with the reason why the owner refuses."""

    reason: str
    credits_remaining: int | None = None
    cap: str | None = None
    detail: str | None = None


class Rejected(ToolserverError):
    """The owner rejects the request: keys, permissions or versions do not match. Nothing was done."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Unanswered(ToolserverError):
    """The owner gave no usable answer. With `perhaps`, it may have carried out the request."""

    def __init__(self, why: str, *, perhaps: bool) -> None:
        super().__init__(why)
        self.perhaps = perhaps


def choose_pause(chance: Callable[[], float] = random.random) -> float:
    """Return the seconds until a second try. They differ, so that callers do not all come back at once."""
    return PAUSE_S + PAUSE_SPREAD_S * chance()


class LedgerOwnerClient:
    """Sends requests to the service that keeps the ledger."""

    def __init__(
        self,
        remote: HttpClient,
        *,
        key_id: str,
        secret: str,
        service: str,
        breaker: CircuitBreaker,
        clock: Clock,
        choose_pause: Callable[[], float] = choose_pause,
    ) -> None:
        """`choose_pause` returns the seconds until a second try."""
        self._remote = remote
        self._key_id = key_id
        self._secret = secret
        self._service = service
        self.breaker, self._clock, self._choose_pause = breaker, clock, choose_pause
        self.must_be_signed = False  # once the owner has signed a reply, or by the settings
        self.rejected: int | None = None  # 401 or 403 while the owner accepts no request: key, clock or service

    async def ask(self, path: str, request: msgspec.Struct, kind: type[T], *, tries: int = TRIES) -> T | OwnerRefusal:
        """Send a request and return the reply, decoded as `kind`, or the owner's refusal.

        Raises:
            Unanswered: there was no reply, or it could not be read.
            CallReused: the call_id was already used for another call.
        """
        body, perhaps, why = msgspec.json.encode(request), False, "the circuit to the ledger is open"
        with anyio.move_on_after(STEP_S):
            for attempt in range(tries):
                if attempt:
                    await anyio.sleep(self._choose_pause())
                if not self.breaker.closed:
                    break
                before, perhaps = perhaps, True
                try:
                    said = _parse_reply(await self._send(path, body), kind)
                except Unreachable as failure:
                    self._record_failure()
                    why = str(failure)
                    continue
                except Rejected as no:
                    self.breaker.record(good=True)
                    raise Unanswered(str(no), perhaps=before) from no
                except CallReused:
                    self.breaker.record(good=True)
                    raise
                self.breaker.record(good=True)
                return said
        raise Unanswered(why, perhaps=perhaps)

    async def probe(self) -> bool:
        """Send a request in spite of an open circuit. Return True if the owner answers, even with a refusal."""
        try:
            _parse_reply(await self._send(VALIDATE, msgspec.json.encode(self._canary())), Validated)
        except Unreachable:
            return False
        except Rejected:
            pass  # it answers, and `rejected` has the reason
        return True

    async def check(self) -> None:
        """Send a request that changes nothing, so that `rejected` and the circuit are right even if nobody calls."""
        try:
            await self.ask(VALIDATE, self._canary(), Validated, tries=1)
        except Unanswered:
            pass  # the circuit has counted it, or `rejected` has the reason

    async def look_after(self, back: Callable[[], None], *, check_s: float = CHECK_S) -> None:
        """Check the owner every `check_s` seconds. Probe it while the circuit is open, and call `back` when it answers.

        Runs until cancelled.
        """
        while True:
            with anyio.move_on_after(check_s):
                await self.breaker.tripped.wait()
            if self.breaker.closed:
                await self.check()
                continue
            await anyio.sleep(min(self.breaker.wait_s, GLANCE_S))
            if self.breaker.wait_s:
                continue
            if self.breaker.start_probe():
                self.breaker.record_probe(good=await self.probe())
            if self.breaker.closed:
                log.info("the ledger is back")
                back()

    async def aclose(self) -> None:
        await self._remote.aclose()

    async def _send(self, path: str, body: bytes) -> HttpAnswer:
        at, nonce = int(self._clock.time()), secrets.token_hex(16)
        signed = authorization(self._key_id, self._secret, path, at, body, nonce)
        headers = {"authorization": signed, "content-type": "application/json"}
        answer = await self._remote.ask("POST", path, body=body, headers=headers, within_s=TRY_S)
        self._check_signature(answer, mac(self._secret, path, at, body, nonce))
        self._note_status(answer.status)
        return answer

    def _check_signature(self, answer: HttpAnswer, request_mac: str) -> None:
        """Raise Unreachable for a reply that somebody else made, or that belongs to another request.

        An owner of an older version signs none. From the first signed reply on, all must be.
        Any other status than 200 does no more than refuse the call, as one who cuts the line
        can too.
        """
        there = answer.headers.get(REPLY_SIGNATURE)
        if answer.status != 200 or (there is None and not self.must_be_signed):
            return
        good = reply_mac(self._secret, request_mac, answer.status, answer.body)
        if there is None or not hmac.compare_digest(good.encode(), there.encode()):
            log.error("a reply of the ledger is not signed by its owner")
            raise Unreachable("the reply is not signed by the owner of the ledger")
        self.must_be_signed = True

    def _canary(self) -> Validate:
        return Validate(cost=0, account_ref=CANARY, service=self._service)

    def _note_status(self, status: int) -> None:
        """Note whether the owner accepts our requests, and log when that changes."""
        if status in (401, 403):
            if status != self.rejected:
                log.error("the owner of the ledger rejects our requests: HTTP %s", status)
            self.rejected = status
        elif status in (200, 409):
            if self.rejected is not None:
                log.info("the owner of the ledger accepts our requests again")
            self.rejected = None
        elif 400 <= status < 500:
            log.error("the owner of the ledger rejects our requests: HTTP %s", status)

    def _record_failure(self) -> None:
        was_closed = self.breaker.closed
        self.breaker.record(good=False)
        if was_closed and not self.breaker.closed:
            log.error("the ledger is away", extra={"again_s": round(self.breaker.wait_s)})


def _parse_reply(answer: HttpAnswer, kind: type[T]) -> T | OwnerRefusal:
    """Return the reply of the owner, or its refusal. A reply of another form counts as no reply.

    Raises:
        Unreachable, Rejected, CallReused
    """
    if answer.status == 409:
        raise CallReused("the call_id is already used for another call")
    if answer.status != 200:
        raise Rejected(answer.status) if 400 <= answer.status < 500 else Unreachable(f"HTTP {answer.status}")
    try:
        said = msgspec.json.decode(answer.body, type=dict[str, Any])
        return msgspec.convert(said, kind) if said.get("ok") is True else msgspec.convert(said, OwnerRefusal)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unreachable("the reply cannot be decoded") from error
