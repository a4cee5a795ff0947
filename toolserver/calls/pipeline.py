"""Makes every call of a tool, in one fixed order of steps.

    check arguments → authenticate → limit → reserve → answer → settle → receipt

MCP, REST, the webhook timer and the command line all call `Pipeline.call`; none of them runs a tool itself.
Charging, limits and receipts are therefore the same everywhere.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import BaseModel

from toolserver.calls.arguments import build_cache_key, validate_arguments
from toolserver.calls.connection import Disconnected, Receive, run_unless_disconnected
from toolserver.calls.idempotency import Idempotency, fingerprint
from toolserver.calls.paid_call import (
    OUR_FAULT,
    CallPayments,
    PaidCall,
    PaidCallResult,
    PaidCallRunner,
    name_storage_failure,
    sell_once,
    show_answer,
)
from toolserver.calls.rate_limit import (
    FreeLimits,
    LimitState,
    PersonalLimits,
    Quota,
    UnchargedLimit,
    find_distinct_quota,
)
from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ResponseCache
from toolserver.calls.tokens import TokenChecks
from toolserver.core import ids
from toolserver.core.caller import Caller
from toolserver.core.metrics import Metrics
from toolserver.core.usage_stats import Usage
from toolserver.errors import (
    CallRejected,
    InternalError,
    InvalidArguments,
    InvalidToken,
    PaymentRequired,
    RateLimited,
    TookTooLong,
)
from toolserver.money.ledger.protocol import Ledger
from toolserver.money.receipts.sign import Receipts
from toolserver.registry.registry import Operation, Tier

if TYPE_CHECKING:
    from toolserver.calls.charge_store import ReceiptedCharges


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call, the same for every face. `no_charge` says why a premium answer was not charged."""

    rendered: RenderedResponse
    limit_states: list[LimitState] = field(default_factory=list)
    credits_remaining: int | None = None
    charged: int = 0
    no_charge: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None
    hit: bool = False
    key: Hashable | None = None  # under which a free answer is cached
    unchanged: bool = False  # the client already has a free answer's bytes: a 304 is enough
    settlement: dict[str, Any] | None = None  # x402: how the payment that came with the call was settled


def describe_outcome(sold: PaidCallResult, caller: Caller | None) -> Outcome:
    """Return the outcome of a sale. It carries the whole receipt unless the caller asked for a reference."""
    carried = None if caller is not None and caller.receipt_reference else sold.receipt
    return Outcome(sold.rendered, [], sold.remaining, sold.charged, sold.reason, sold.receipt_id, carried)


log = logging.getLogger(__name__)

HUNG_UP = 499  # the status counted for a caller who disconnected before the answer; nothing is sent


class Pipeline:
    """Makes calls. `receipts` is None if no receipts are signed, `x402` if x402 payments are off."""

    def __init__(
        self,
        answers: ResponseCache,
        *,
        ledger: Ledger,
        limits: FreeLimits,
        idempotency: Idempotency,
        metrics: Metrics,
        usage: Usage | None = None,
        receipts: Receipts | None = None,
        personal: PersonalLimits | None = None,
        premium: PersonalLimits | None = None,
        uncharged: UnchargedLimit | None = None,
        receipted_charges: "ReceiptedCharges | None" = None,
        x402: CallPayments | None = None,
    ) -> None:
        self.answers, self.ledger, self.limits, self.metrics = answers, ledger, limits, metrics
        self.personal = personal or PersonalLimits(monotonic=answers.clock.monotonic, enabled=limits.enabled)
        self.premium = premium or PersonalLimits(
            per_minute=600, monotonic=answers.clock.monotonic, enabled=limits.enabled, name="premium"
        )
        self.usage = usage or Usage()
        self.asked_at: dict[str, float] = {}  # when each tool that the background keeps fresh was last called
        self._idempotency = idempotency
        self.tokens = TokenChecks(ledger, monotonic=answers.clock.monotonic, enabled=limits.enabled)
        free = uncharged or UnchargedLimit(monotonic=answers.clock.monotonic, enabled=limits.enabled)
        self._paid_calls = PaidCallRunner(answers, ledger, metrics, receipts, receipted_charges, free)
        self._x402 = x402

    async def answer_from_cache(
        self,
        operation: Operation,
        key: Hashable,
        now: float,
        client: str | None,
        has_bytes: Callable[[RenderedResponse], bool] | None = None,
        agent: str = "",
    ) -> tuple[RenderedResponse, list[LimitState], bool] | None:
        """Return a cached free answer, the state of the client's limits, and whether the client already has the answer.

        Returns None, with nothing counted, if the answer has to be made. `client` is None for callers without limits.
        `has_bytes` says whether the client already has these bytes: a 304 is exempt from spacing. Raises RateLimited.
        """
        rendered = self.find_cached(key, now)
        if rendered is None:
            return None
        unchanged = _is_unchanged(rendered, has_bytes)
        limit_states: list[LimitState] = []
        if client is not None and self.limits.enabled and operation.spaced:
            try:
                limit_states = await self.limits.count(client, operation.name, question=key, spaced=not unchanged)
            except RateLimited as rejected:
                self.metrics.called(operation.name, operation.tier, rejected.code, 0.0)
                self.usage.count(agent, operation.endpoint, rejected.status, operation.tier, now)
                raise
        self.count_hit(operation, now, agent, 304 if unchanged else 200)
        return rendered, limit_states, unchanged

    def find_cached(self, key: Hashable, now: float) -> RenderedResponse | None:
        """Return a cached free answer that has not expired, or None. Nothing is counted."""
        found = self.answers.find(key, now)
        return None if found is None or found.nothing or self.answers.needs_refresh(found, now) else found

    def count_hit(self, operation: Operation, now: float, agent: str, status: int = 200) -> None:
        self.metrics.hit(operation.name, operation.tier)
        self.usage.count(agent, operation.endpoint, status, operation.tier, now)

    def find_billable(self, operation: Operation, key: Hashable, now: float) -> RenderedResponse | None:
        """Return a cached answer that `charge_cached` can charge for, or None if the answer has to be made."""
        return self._paid_calls.find_billable(operation, key, now)

    async def charge_cached(
        self, operation: Operation, arguments: BaseModel, rendered: RenderedResponse, caller: Caller
    ) -> Outcome:
        """Charge for a cached answer to a call without arguments. This is fast, so disconnects are not watched.

        Raises CallRejected: nothing was charged.
        """
        return await self._count(operation, caller, self._charge_cached(operation, arguments, rendered, caller))

    async def _charge_cached(
        self, operation: Operation, arguments: BaseModel, rendered: RenderedResponse, caller: Caller
    ) -> Outcome:
        token = await self._admit_buyer(operation, caller)
        if operation.follow_s is not None:
            self.asked_at[operation.name] = self.answers.clock.monotonic()
        call = PaidCall(ids.call_id(), operation, arguments, {}, caller, token)
        if caller.idempotency_key is None:
            return describe_outcome(await self._paid_calls.charge_cached(call, rendered), caller)
        sold = await sell_once(self._idempotency, self._paid_calls, call, caller.idempotency_key)
        return describe_outcome(sold, caller)

    def _add_payment_offer(self, operation: Operation, rejected: CallRejected) -> None:
        """Add an x402 offer to a rejection for lack of payment."""
        if self._x402 is not None and isinstance(rejected, PaymentRequired):
            self._x402.add_offer(operation, rejected)

    async def _admit_buyer(self, operation: Operation, caller: Caller) -> str:
        """Count a paid call against its limit, and return the caller's token. Raise PaymentRequired, RateLimited."""
        token = self.tokens.require(operation, caller)
        if caller.limited:
            await self.premium.count("token " + fingerprint(token), operation.name)
        return token

    async def call(
        self,
        operation: Operation,
        given: Mapping[str, Any],
        caller: Caller,
        receive: Receive | None = None,
        has_bytes: Callable[[RenderedResponse], bool] | None = None,
    ) -> Outcome:
        """Make a call. `receive` is the caller's connection, if there is one.

        `has_bytes` says whether the client already has these bytes; then a free outcome is `unchanged`, and no spacing
        is counted.

        Raises:
            CallRejected: the caller gets no payload, and nothing was charged.
            Disconnected: the caller disconnected while a paid answer was made; nothing was charged.
        """
        return await self._count(operation, caller, self._call(operation, given, caller, receive, has_bytes))

    async def check(self, operation: Operation, given: Mapping[str, Any], caller: Caller) -> int:
        """Check a paid call without running or charging it, and return the credits left. Raise what `call` raises."""
        try:
            validate_arguments(operation, given)
            token = await self._admit_buyer(operation, caller)
            return await self.tokens.check_funds(operation, token, caller)
        except CallRejected as rejected:
            self._add_payment_offer(operation, rejected)
            raise

    async def _count(self, operation: Operation, caller: Caller, made: Awaitable[Outcome]) -> Outcome:
        """Return the outcome of a call, and count how it ended and how long it took, even if it raises.

        Outcomes are `ok`, `stale`, `cancelled` if the caller disconnected, or an error code.
        """
        started = time.perf_counter()
        word, status = InternalError.code, InternalError.status
        try:
            outcome = await made
            word, status = ("stale" if outcome.rendered.stale else "ok"), 304 if outcome.unchanged else 200
            if operation.credits or operation.needs_token:
                self.tokens.record(caller, known=True)
            return outcome
        except CallRejected as rejected:
            word, status = rejected.code, rejected.status
            if isinstance(rejected, InvalidToken):
                self.tokens.record(caller, known=False)
            self._add_payment_offer(operation, rejected)
            raise
        except (Disconnected, anyio.get_cancelled_exc_class()):
            word, status = "cancelled", HUNG_UP
            raise
        except Exception:
            log.exception("a call failed", extra={"tool": operation.name, "request_id": caller.request_id})
            raise InternalError(OUR_FAULT) from None
        finally:
            self.metrics.called(operation.name, operation.tier, word, time.perf_counter() - started)
            self.usage.count(caller.agent, operation.endpoint, status, operation.tier, self.answers.clock.time())

    async def _call(
        self,
        operation: Operation,
        given: Mapping[str, Any],
        caller: Caller,
        receive: Receive | None,
        has_bytes: Callable[[RenderedResponse], bool] | None,
    ) -> Outcome:
        arguments = validate_arguments(operation, given)
        if operation.follow_s is not None:
            self.asked_at[operation.name] = self.answers.clock.monotonic()
        if operation.tier is Tier.PREMIUM:
            return await self._call_premium(operation, arguments, given, caller, receive)
        if operation.personal:
            with name_storage_failure():
                return await self._call_personal(operation, arguments, caller)
        return await self._call_free(operation, arguments, caller, has_bytes)

    async def _call_free(
        self,
        operation: Operation,
        arguments: BaseModel,
        caller: Caller,
        has_bytes: Callable[[RenderedResponse], bool] | None,
    ) -> Outcome:
        """Answer a free call from the cache, or make the answer.

        A call that ends in a 304 or a 400 costs nothing of the spacing. It is counted first and given back afterwards
        where only the made answer shows how it ends. A refusal for which an upstream was asked is given back only if
        the different values of its arguments are limited, since otherwise nothing would limit such requests.
        """
        key = build_cache_key(operation, arguments)
        found = self.answers.fresh(operation, arguments, key)
        unchanged = found is not None and _is_unchanged(show_answer(caller, found), has_bytes)
        distinct = find_distinct_quota(operation, arguments)
        client, limit_states = await self._limit(operation, key, distinct, caller, spaced=not unchanged)
        try:
            rendered = show_answer(caller, found or await self.answers.make(operation, arguments, key))
        except InvalidArguments as refused:
            if client is not None and (distinct is not None or not refused.asked_upstream):
                self.limits.give_back_spacing(client, operation.name, key)
            raise
        if not unchanged and _is_unchanged(rendered, has_bytes):
            unchanged = True
            if client is not None:
                self.limits.give_back_spacing(client, operation.name, key)
        return Outcome(rendered, limit_states, hit=found is not None, key=key, unchanged=unchanged)

    async def _limit(
        self,
        operation: Operation,
        key: Hashable,
        distinct: tuple[Quota, str] | None,
        caller: Caller,
        *,
        spaced: bool,
    ) -> tuple[str | None, list[LimitState]]:
        """Count a free call in every limit that applies, or in none if one of them refuses the call.

        Return the name of the client if a place of its spacing is counted, and the state of its limits.
        """
        if not caller.limited or not self.limits.enabled or not (operation.spaced or operation.quotas):
            return None, []
        client = await self.tokens.identify_client(caller)
        if operation.quotas:
            await self.personal.look(client, operation.name, operation.quotas)
        limit_states = []
        if operation.spaced:
            limit_states = await self.limits.count(
                client, operation.name, question=key, spaced=spaced, distinct=distinct
            )
        if operation.quotas:
            await self.personal.count(client, operation.name, operation.quotas)
        return (client if operation.spaced and spaced else None), limit_states

    async def _call_personal(self, operation: Operation, arguments: BaseModel, caller: Caller) -> Outcome:
        """Return an answer for this caller alone. It is made for each call, knowing the caller, and never cached."""
        self.tokens.check(caller)
        token = self.tokens.require(operation, caller) if operation.needs_token else None
        remaining = None if token is None else await self.ledger.balance(token)
        if caller.limited:
            client = await self.tokens.identify_client(caller)
            await self.personal.count(client, operation.name, operation.quotas)
        rendered = await self.answers.compose(operation, arguments, caller)
        if rendered.nothing:
            raise TookTooLong()
        settlement = await self._x402.find_settlement(caller.payment) if self._x402 and caller.payment else None
        return Outcome(rendered, [], remaining, settlement=settlement)

    async def _call_premium(
        self,
        operation: Operation,
        arguments: BaseModel,
        given: Mapping[str, Any],
        caller: Caller,
        receive: Receive | None,
    ) -> Outcome:
        if caller.payment is not None and self._x402 is not None:
            if caller.limited:
                await self.premium.count(caller.client, operation.name)
            sell = partial(self._x402.sell, operation, arguments, given, caller)
            paid, settlement = await run_unless_disconnected(receive, sell)
            return replace(describe_outcome(paid, None), settlement=settlement)
        token = await self._admit_buyer(operation, caller)

        call = PaidCall(ids.call_id(), operation, arguments, given, caller, token, receive)
        if caller.idempotency_key is None:
            return describe_outcome(await self._paid_calls.run(call), caller)
        sold = await sell_once(self._idempotency, self._paid_calls, call, caller.idempotency_key)
        return describe_outcome(sold, caller)


def _is_unchanged(rendered: RenderedResponse, has_bytes: Callable[[RenderedResponse], bool] | None) -> bool:
    """Return True if the client already has this answer, so that a 304 is enough."""
    return has_bytes is not None and not rendered.nothing and has_bytes(rendered)
