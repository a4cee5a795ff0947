"""The one way a call is made.

    check arguments → authenticate → limit → reserve → answer → settle → receipt

MCP, REST, the webhook timer and the command line all call `Pipeline.call`; none of them runs a tool itself.
That is what makes charging, limits and receipts the same everywhere.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from toolserver import ids
from toolserver.access import Caller, well_formed
from toolserver.answers import Answers, key_of
from toolserver.billing.ledger import Ledger
from toolserver.billing.receipts import Receipts
from toolserver.errors import (
    CallRejected,
    InternalError,
    InvalidArguments,
    PaymentRequired,
    RateLimited,
)
from toolserver.idempotency import Idempotency, fingerprint
from toolserver.limits import FreeLimits, PersonalLimits, Quota, Standing
from toolserver.metrics import Metrics
from toolserver.registry import Operation, Tier
from toolserver.rendering import Rendered
from toolserver.till import OUR_FAULT, Order, Sold, Till, packed, unpacked
from toolserver.usage import Usage

if TYPE_CHECKING:
    from toolserver.billing.counter import Counter
    from toolserver.payments.x402.exact import Exact

log = logging.getLogger(__name__)

KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to, told the same way to every face."""

    rendered: Rendered
    standings: list[Standing] = field(default_factory=list)
    credits_remaining: int | None = None
    charged: int = 0
    no_charge: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None
    hit: bool = False
    client: str | None = None
    settlement: dict[str, Any] | None = None  # x402: what became of the payment that came with the call


class Pipeline:
    """Runs calls. `receipts` may be absent while no key is set up."""

    def __init__(
        self,
        answers: Answers,
        *,
        ledger: Ledger,
        limits: FreeLimits,
        idempotency: Idempotency,
        metrics: Metrics,
        usage: Usage | None = None,
        receipts: Receipts | None = None,
        personal: PersonalLimits | None = None,
        premium: PersonalLimits | None = None,
        counter: "Counter | None" = None,
        x402: "Exact | None" = None,
    ) -> None:
        self.answers, self.ledger, self.limits, self.metrics = answers, ledger, limits, metrics
        self.personal = personal or PersonalLimits(monotonic=answers.clock.monotonic, enabled=limits.enabled)
        self.premium = premium or PersonalLimits(
            per_minute=600, monotonic=answers.clock.monotonic, enabled=limits.enabled, name="premium"
        )
        self.usage = usage or Usage()
        self.asked_at: dict[str, float] = {}  # of the tools that are followed, the time of their last call
        self._idempotency = idempotency
        self._till = Till(answers, ledger, metrics, receipts, counter)
        self._x402 = x402

    def at_hand(
        self,
        operation: Operation,
        key: Hashable,
        now: float,
        client: str | None,
        known: Callable[[Rendered], bool] | None = None,
        agent: str = "",
    ) -> tuple[Rendered, list[Standing], bool] | None:
        """A free answer that needs no waiting: the answer, the client's standing, whether the client has it already.

        None when the call has to go the long way; nothing was counted then. `client` is None for unlimited callers,
        `known` tells whether the client has these bytes (a 304 costs nothing of the spacing).

        Raises:
            RateLimited: the client has to wait.
        """
        rendered = self.answers.hit(key, now)
        if rendered is None or rendered.nothing or self.answers.due(rendered, now):
            return None
        unchanged = known is not None and known(rendered)
        standings: list[Standing] = []
        if client is not None and self.limits.enabled and operation.spaced:
            try:
                standings = self.limits.take(client, operation.name, spaced=not unchanged)
            except RateLimited as rejected:
                self.metrics.called(operation.name, operation.tier, rejected.code, 0.0)
                self.usage.count(agent, operation.endpoint, rejected.status, operation.tier, now)
                raise
        self.metrics.hit(operation.name, operation.tier)
        self.usage.count(agent, operation.endpoint, 304 if unchanged else 200, operation.tier, now)
        return rendered, standings, unchanged

    def owed_at_hand(self, operation: Operation, key: Hashable, now: float) -> Rendered | None:
        """A paid answer that needs no waiting: what `sell_at_hand` sells. None when the call has to go the long way."""
        return self._till.owed_at_hand(operation, key, now)

    async def sell_at_hand(
        self, operation: Operation, arguments: BaseModel, rendered: Rendered, caller: Caller
    ) -> Outcome:
        """Sell an answer that is at hand to a call without arguments. The caller is not watched: it takes no time.

        Raises:
            CallRejected: nothing was charged.
        """
        return await self._counted(operation, caller, self._sold_at_hand(operation, arguments, rendered, caller))

    async def _sold_at_hand(
        self, operation: Operation, arguments: BaseModel, rendered: Rendered, caller: Caller
    ) -> Outcome:
        token = self._admitted(operation, caller)
        if operation.follow_s is not None:
            self.asked_at[operation.name] = self.answers.clock.monotonic()
        order = Order(ids.call_id(), operation, arguments, {}, caller, token)
        return _outcome(await self._till.sell_at_hand(order, rendered))

    def _offered(self, operation: Operation, rejected: CallRejected) -> None:
        """Whoever is refused for want of payment is told how to pay."""
        if self._x402 is not None and isinstance(rejected, PaymentRequired):
            self._x402.offered(operation, rejected)

    def _admitted(self, operation: Operation, caller: Caller) -> str:
        """The token of a caller who may buy now. Raises PaymentRequired, RateLimited."""
        token = _token(operation, caller)
        if caller.limited:
            self.premium.take("token " + fingerprint(token), operation.name)
        return token

    def give_back(self, operation: Operation, outcome: Outcome) -> None:
        """The answer turned out to be one the client has: it costs nothing of the spacing."""
        if outcome.client is not None:
            self.limits.give_back_spacing(outcome.client, operation.name)

    async def call(self, operation: Operation, given: Mapping[str, Any], caller: Caller) -> Outcome:
        """Make a call.

        Raises:
            CallRejected: the caller gets no payload; nothing was charged.
        """
        return await self._counted(operation, caller, self._call(operation, given, caller))

    async def _counted(self, operation: Operation, caller: Caller, made: Awaitable[Outcome]) -> Outcome:
        """What the call comes to; how it ended, and how long it took, is counted whatever happens."""
        started = time.perf_counter()
        word, status = "error", 500
        try:
            outcome = await made
            word, status = ("stale" if outcome.rendered.stale else "ok"), 200
            return outcome
        except CallRejected as rejected:
            word, status = rejected.code, rejected.status
            self._offered(operation, rejected)
            raise
        except Exception:
            log.exception("a call failed", extra={"tool": operation.name, "request_id": caller.request_id})
            raise InternalError(OUR_FAULT) from None
        finally:
            self.metrics.called(operation.name, operation.tier, word, time.perf_counter() - started)
            self.usage.count(caller.agent, operation.endpoint, status, operation.tier, self.answers.clock.time())

    async def _call(self, operation: Operation, given: Mapping[str, Any], caller: Caller) -> Outcome:
        arguments = self.check(operation, given)
        if operation.follow_s is not None:
            self.asked_at[operation.name] = self.answers.clock.monotonic()
        if operation.tier is Tier.PREMIUM:
            return await self._paid(operation, arguments, given, caller)
        if operation.personal:
            return await self._personal(operation, arguments, caller)
        client, standings = await self._limit(operation, arguments, caller)
        key = key_of(operation, arguments)
        hit = self.answers.hit(key, self.answers.clock.time()) is not None
        rendered = await self.answers.get(operation, arguments, key)
        return Outcome(rendered, standings, hit=hit, client=client)

    def check(self, operation: Operation, given: Mapping[str, Any]) -> BaseModel:
        """The arguments as the tool wants them. Raises InvalidArguments; nothing has happened yet."""
        if any("\0" in value for value in given.values() if isinstance(value, str)):
            raise InvalidArguments("A text holds a NUL character.", errors=[])
        if not given and not operation.arguments.model_fields:
            return operation.arguments.model_construct()
        try:
            return operation.arguments.model_validate(dict(given))
        except ValidationError as error:
            raise invalid(error) from None

    async def client_of(self, caller: Caller) -> str:
        """Who limits count a call for: a valid bearer is its own client, a bad one is ignored."""
        if caller.token and well_formed(caller.token):
            try:
                if await self.ledger.knows(caller.token):
                    return "token " + fingerprint(caller.token)
            except PaymentRequired:
                log.info("the ledger is away: a free call counts by address")
        return caller.client

    async def _limit(
        self, operation: Operation, arguments: BaseModel, caller: Caller
    ) -> tuple[str | None, list[Standing]]:
        if not caller.limited or not self.limits.enabled or not (operation.spaced or operation.quotas):
            return None, []
        client = await self.client_of(caller) if caller.token else caller.client
        if operation.quotas:
            self.personal.take(client, operation.name, operation.quotas)
        if not operation.spaced:
            return None, []
        if operation.distinct is not None:
            name, quota, window_s = operation.distinct
            if (value := getattr(arguments, name)) is not None:
                self.limits.distinct.take(client, Quota(f"distinct {name}", quota, window_s), str(value))
        return client, self.limits.take(client, operation.name)

    async def _personal(self, operation: Operation, arguments: BaseModel, caller: Caller) -> Outcome:
        """An answer for this caller alone: made for each call, told whose it is, kept nowhere."""
        remaining = await self.ledger.balance(_token(operation, caller)) if operation.needs_token else None
        if caller.limited:
            client = await self.client_of(caller) if caller.token else caller.client
            self.personal.take(client, operation.name, operation.quotas)
        rendered = await self.answers.compose(operation, arguments, caller)
        if rendered.nothing:
            raise InternalError("This took too long; nothing is known to have been done.")
        settlement = await self._x402.told(caller.payment) if self._x402 and caller.payment else None
        return Outcome(rendered, [], remaining, settlement=settlement)

    async def _paid(
        self, operation: Operation, arguments: BaseModel, given: Mapping[str, Any], caller: Caller
    ) -> Outcome:
        if caller.payment is not None and self._x402 is not None:
            if caller.limited:
                self.premium.take(caller.client, operation.name)
            sold, settlement = await self._x402.sell(operation, arguments, given, caller)
            return replace(_outcome(sold), settlement=settlement)
        token = self._admitted(operation, caller)

        async def sell(call_id: str) -> Sold:
            return await self._till.sell(Order(call_id, operation, arguments, given, caller, token))

        if caller.idempotency_key is not None and not 1 <= len(caller.idempotency_key) <= KEY_LENGTH:
            raise InvalidArguments(f"An Idempotency-Key has 1 to {KEY_LENGTH} characters.", errors=[])
        if caller.idempotency_key is None:
            sold = await sell(ids.call_id())
        else:
            request = fingerprint(f"{operation.name} {arguments.model_dump_json()}")
            sold = await self._idempotency.once(
                fingerprint(token), caller.idempotency_key, request, sell, pack=packed, unpack=unpacked
            )
        return _outcome(sold)


def _outcome(sold: Sold) -> Outcome:
    return Outcome(sold.rendered, [], sold.remaining, sold.charged, sold.reason, sold.receipt_id, sold.receipt)


def _token(operation: Operation, caller: Caller) -> str:
    """The caller's token, well formed. Raises PaymentRequired."""
    if caller.token is None:
        why = "acts for the owner of a token"
        if operation.credits:
            why = f"costs {operation.credits} credit{'s' if operation.credits > 1 else ''}"
        raise PaymentRequired("missing_token", f"{operation.name} {why}: send a bearer token.")
    if not well_formed(caller.token):
        raise PaymentRequired("invalid_token", "The token is malformed or unknown.")
    return caller.token


def invalid(error: ValidationError) -> InvalidArguments:
    """pydantic's complaints as ours: where, what, and the kind; never the value itself."""
    errors = [
        {"loc": ".".join(map(str, e["loc"])) or "arguments", "msg": e["msg"], "type": e["type"]}
        for e in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    said = "; ".join(f"{e['loc']}: {e['msg']}" for e in errors[:5])
    return InvalidArguments(said, errors=errors)
