"""The owner of the ledger as a follower asks it: signed, patiently, and not at all while it is known to be away."""

import logging
import random
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import msgspec

from toolserver.billing.breaker import Breaker
from toolserver.billing.ledger import CallReused
from toolserver.billing.remote import Answer, Remote, Unreachable
from toolserver.billing.wire import CANARY, VALIDATE, Validate, Validated, authorization
from toolserver.clock import Clock
from toolserver.errors import ToolserverError

log = logging.getLogger(__name__)

T = TypeVar("T")

TRY_S, TRIES = 2.0, 2
STEP_S = 4.5  # all tries of one step
PAUSE_S, PAUSE_SPREAD_S = 0.05, 0.1
GLANCE_S = 1.0  # so often it is looked at whether a probe is due


class No(msgspec.Struct):
    """The owner's refusal."""

    reason: str
    credits_remaining: int | None = None


class Rejected(ToolserverError):
    """The owner does not accept the request at all: keys, permissions or versions do not fit. Nothing was done."""


class Unanswered(ToolserverError):
    """The owner did not say. `perhaps`: it may have done what it was asked."""

    def __init__(self, why: str, *, perhaps: bool) -> None:
        super().__init__(why)
        self.perhaps = perhaps


class Owner:
    """Where the books are."""

    def __init__(
        self,
        remote: Remote,
        *,
        key_id: str,
        secret: str,
        breaker: Breaker,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._remote, self._key_id, self._secret = remote, key_id, secret
        self.breaker, self._clock, self._chance = breaker, clock, chance

    async def ask(self, path: str, asked: msgspec.Struct, kind: type[T], *, tries: int = TRIES) -> T | No:
        """What the owner says.

        Raises:
            Unanswered: it says nothing, or nothing that can be understood.
            CallReused: the call_id is another call's.
        """
        body, perhaps, why = msgspec.json.encode(asked), False, "the ledger is left alone for now"
        with anyio.move_on_after(STEP_S):
            for attempt in range(tries):
                if attempt:
                    await anyio.sleep(PAUSE_S + PAUSE_SPREAD_S * self._chance())
                if not self.breaker.closed:
                    break
                before, perhaps = perhaps, True
                try:
                    said = _understood(await self._once(path, body), kind)
                except Unreachable as failure:
                    self._failed()
                    why = str(failure)
                    continue
                except Rejected as no:
                    self.breaker.told(good=True)
                    log.error("the ledger refuses to deal with us: %s", no)
                    raise Unanswered(str(no), perhaps=before) from no
                except CallReused:
                    self.breaker.told(good=True)
                    raise
                self.breaker.told(good=True)
                return said
        raise Unanswered(why, perhaps=perhaps)

    async def probe(self) -> bool:
        """Whether anybody is there, asked past the breaker. A refusal is an answer too."""
        try:
            _understood(
                await self._once(VALIDATE, msgspec.json.encode(Validate(cost=0, account_ref=CANARY))), Validated
            )
        except Unreachable:
            return False
        except Rejected as no:
            log.error("the ledger refuses to deal with us: %s", no)
        return True

    async def look_after(self, back: Callable[[], None]) -> None:
        """When the breaker has opened, probe until the owner is back, then say so. Until cancelled."""
        while True:
            await self.breaker.tripped.wait()
            await anyio.sleep(min(self.breaker.wait_s, GLANCE_S))
            if self.breaker.wait_s:
                continue
            self.breaker.half_open()
            self.breaker.probed(good=await self.probe())
            if self.breaker.closed:
                log.info("the ledger is back")
                back()

    async def aclose(self) -> None:
        await self._remote.aclose()

    async def _once(self, path: str, body: bytes) -> Answer:
        signed = authorization(self._key_id, self._secret, path, int(self._clock.time()), body)
        headers = {"authorization": signed, "content-type": "application/json"}
        return await self._remote.ask("POST", path, body=body, headers=headers, within_s=TRY_S)

    def _failed(self) -> None:
        was_closed = self.breaker.closed
        self.breaker.told(good=False)
        if was_closed and not self.breaker.closed:
            log.error("the ledger is away", extra={"again_s": round(self.breaker.wait_s)})


def _understood(answer: Answer, kind: type[T]) -> T | No:
    """The reply. Anything but one of ours is as good as none.

    Raises:
        Unreachable, Rejected, CallReused
    """
    if answer.status == 409:
        raise CallReused("the call_id names another call")
    if answer.status != 200:
        raise (Rejected if 400 <= answer.status < 500 else Unreachable)(f"HTTP {answer.status}")
    try:
        said = msgspec.json.decode(answer.body, type=dict[str, Any])
        return msgspec.convert(said, kind) if said.get("ok") is True else msgspec.convert(said, No)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unreachable("the reply makes no sense") from error
