"""Makes every call of a tool, over every face, in one fixed order of steps.

    peek      look for a cached answer that may go out as it is                    nothing waits, nothing is counted
    admit     check the token and count the call in every limit that applies       the only place where they are counted
    answer    free: the bytes. Priced: sell them (`toolserver.calls.paid_call`). Personal: run the tool for this caller
    send      the face sends the outcome; `toolserver.calls.response` then marks the call as delivered

MCP, REST, the webhook timer and the command line all come here; none of them runs a tool,
counts or charges itself. Charging, limits and receipts are therefore the same everywhere. The
forms for a cached answer (`admit_cached`, `answer` given that answer) are the same steps with
nothing to wait for.

Limits. A call counts in all limits that apply or in none. A place of the spacing is
provisional: a call that ends with a 304 or a 400 gives it back. A call known to be a 304
before it is admitted does not take one. A refusal for which an upstream was asked gives it
back only if the different values of its arguments are limited, since otherwise nothing would
limit such requests.

States of a sale for a token:

    admitted --> charged, receipt stored (one transaction) ----------------------> delivered
        |                                                     ^             |
        +-----> reserved --> composed --> charged --> receipt +             +---> released
                    |            |            |
                    +------------+------------+---> released with a reason

    admitted     nothing is stored. A refusal, a cancelled task or a crash leaves nothing behind.
    reserved     the price is held for HOLD_S. A crash leaves the hold, which is released as a charge is: not charged.
    composed     exists in memory only, and is kept for all who ask the same. A caller who leaves cancels only its own
                 wait. Failed, stale and empty answers are released, each with its reason and, if it can be signed, a
                 receipt that says so.
    charged      the ledger has the charge as undelivered. A charge for which no receipt can be made is released.
    delivered    final. Before that a caller who disconnects gets the credits back, and so does one whose answer could
                 not be sent or whose process died: the next start releases what was not delivered, and where instances
                 share a ledger another one does, after a lease. The results kept for its keys go with it.

Who may cancel what. The caller's connection is watched while an answer is made. Reserving and
charging may be cancelled at any point, since what may have been charged is withdrawn.
Settling and signing are shielded, for SETTLE_S at most. An Idempotency-Key is stored with its
call_id before the work and with its result after it, or both in the transaction that charges;
work that died is done again under the same call_id, so that the ledger charges for it once.

A call that carries its own payment (x402) reserves nothing: the payment is verified, the
answer composed, the payment settled, and one payment gets one answer
(`toolserver.money.x402.exact`).
"""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

import anyio
from cachetools import LRUCache
from pydantic import BaseModel

from toolserver.calls.arguments import Call, build_cache_key, validate_arguments
from toolserver.calls.idempotency import KeyedActions
from toolserver.calls.paid_call import (
    OUR_FAULT,
    CallMoney,
    PaidCallResult,
    PaidCallRunner,
    says_charge,
    show_answer,
)
from toolserver.calls.rate_limit import (
    KEYS,
    TOKEN_CLIENT,
    Bucket,
    CallLimits,
    LimitState,
    Quota,
    find_distinct_quota,
    name_quota,
)
from toolserver.calls.response import ChargeNote, Disconnected, Receive, RenderedResponse, run_unless_disconnected
from toolserver.calls.response_cache import ResponseCache
from toolserver.calls.visitor_tokens import VISITOR_CLIENT, VisitorTokens
from toolserver.core import tracing
from toolserver.core.caller import Caller, is_visitor_token, token_hash, well_formed
from toolserver.core.metrics import Metrics, Usage
from toolserver.core.models import iso
from toolserver.core.waiting_room import waiting_client
from toolserver.errors import (
    BillingUnavailable,
    CallRejected,
    InsufficientCredits,
    InternalError,
    InvalidArguments,
    InvalidToken,
    MissingToken,
    PaymentRequired,
    RateLimited,
    TookTooLong,
    UnpaidCall,
)
from toolserver.money.ledger.protocol import Ledger
from toolserver.registry.registry import Operation, Tier
from toolserver.registry.site_facts import VISITOR_TOKENS
from toolserver.sql.errors import StorageFailed

log = logging.getLogger(__name__)

HUNG_UP = 499  # the status counted for a caller who disconnected before the answer; nothing is sent
TOKEN_TRIES = Quota("unknown tokens", 30, 60)
CLIENT_S = 1.0  # how long the ledger's answers about a token, whose credits it spends and how many, are reused
CREDITS_WAIT_S = 1.0  # how long a free answer waits for the ledger to say what a token has left
GOOD_TOKENS = 10_000  # remembered, so that guesses from the same address do not lock out a customer
_NOBODY = ("", 0.0)

Way: TypeAlias = Literal["made", "cached", "repeated"]


class TokenChecks:
    """Counts unknown tokens by the address they came from, and refuses more of them.

    Visitor tokens are judged here alone, without the ledger: they are no accounts.
    """

    def __init__(
        self,
        ledger: Ledger,
        visitors: VisitorTokens,
        *,
        monotonic: Callable[[], float],
        enabled: bool = True,
        keys: int = KEYS,
    ) -> None:
        self._ledger, self._visitors, self._enabled = ledger, visitors, enabled
        self._tries = Bucket(TOKEN_TRIES, monotonic=monotonic, keys=keys)
        self._good: LRUCache[bytes, bool] = LRUCache(GOOD_TOKENS)
        self._monotonic = monotonic
        self._clients: LRUCache[bytes, tuple[str, float]] = LRUCache(GOOD_TOKENS)
        self._credits: LRUCache[bytes, tuple[int, float]] = LRUCache(GOOD_TOKENS)

    def find_client(self, token: str) -> str | None:
        """Return the name that limits count by for a token, if the ledger just gave it or none is needed."""
        if is_visitor_token(token):
            return self._visitors.find_client(token)
        name, until = self._clients.get(token_hash(token), _NOBODY)
        return name if self._monotonic() < until else None

    async def identify_client(self, caller: Caller) -> str:
        """Return the name that limits count by: the paying token of a valid token, otherwise the caller's address.

        A valid visitor token has a name of its own.
        """
        if is_visitor_token(caller.token):
            return self.identify_visitor(caller) or caller.client
        if caller.token and well_formed(caller.token) and not self.is_suspect(caller):
            try:
                payer = await self._ledger.find_payer(caller.token)
                self.record(caller, is_valid=payer is not None)
                if payer is not None:
                    name = f"{TOKEN_CLIENT}{payer}"
                    self._clients[token_hash(caller.token)] = name, self._monotonic() + CLIENT_S
                    return name
            except PaymentRequired:
                log.info("the ledger is unavailable, so a free call is counted by address")
        return caller.client

    def identify_visitor(self, caller: Caller) -> str | None:
        """Return the name that limits count by for a visitor token, or None for one that is forged or has expired.

        Such a token counts as an invented one.
        """
        name = None if caller.token is None else self._visitors.find_client(caller.token)
        if name is None:
            self.record(caller, is_valid=False)
        return name

    def find_credits(self, token: str) -> int | None:
        """Return the credits that a token can spend if the ledger said so less than `CLIENT_S` ago."""
        credits, until = self._credits.get(token_hash(token), (None, 0.0))
        return credits if self._monotonic() < until else None

    async def ask_credits(self, caller: Caller) -> int | None:
        """Return the credits that the caller's token can spend; None for an unknown token or a ledger that is silent.

        A free answer says so, but waits for it `CREDITS_WAIT_S` at most, and never fails for it.
        """
        token = caller.token
        if token is None or not well_formed(token) or self.is_suspect(caller):
            return None
        if (credits := self.find_credits(token)) is not None:
            return credits
        try:
            with anyio.move_on_after(CREDITS_WAIT_S):
                credits = await self._ledger.balance(token)
                self._credits[token_hash(token)] = credits, self._monotonic() + CLIENT_S
        except InvalidToken:
            self.record(caller, is_valid=False)
        except PaymentRequired:
            log.info("the ledger is unavailable or refuses the token, so a free answer does not say what is left")
        return credits

    def forget_credits(self) -> None:
        """Forget what tokens can spend, because one of them has spent. Allowances spend what others have."""
        if self._credits:
            self._credits = LRUCache(GOOD_TOKENS)

    def require(self, operation: Operation, caller: Caller) -> str:
        """Return the caller's token. Raise PaymentRequired, RateLimited."""
        if caller.token is None:
            why = "acts for the owner of a token"
            if operation.credits:
                why = f"costs {operation.credits} credit{'s' if operation.credits > 1 else ''}"
            raise MissingToken(f"{operation.name} {why}: send a bearer token. {operation.lack}".rstrip())
        if is_visitor_token(caller.token):
            self.check(caller)
            raise self._reject_visitor(operation, caller.token)
        if not well_formed(caller.token):
            raise InvalidToken("The token is malformed or unknown.")
        self.check(caller)
        return caller.token

    def _reject_visitor(self, operation: Operation, token: str) -> PaymentRequired:
        """Return the refusal of a visitor token where an account is needed."""
        if self._visitors.find_client(token) is None:
            end = self._visitors.find_end(token)
            return InvalidToken(
                "The token is malformed or unknown." if end is None else "The visitor token has expired."
            )
        what = "acts for the owner of a token with credits"
        if operation.credits:
            what = f"costs {operation.credits} credit{'s' if operation.credits > 1 else ''}"
        return UnpaidCall(
            f"{operation.name} {what}, and a visitor token has none: it gives limits of your own on free tools. Buy"
            " credits (payment_buy_credits) and send the token that you get for them instead."
        )

    def is_suspect(self, caller: Caller) -> bool:
        """Return True if the address has tried too many tokens and this one is not known to be good."""
        if not self._enabled or not caller.limited or caller.token is None:
            return False
        return not self._tries.look(caller.client).allowed and not self._is_good(caller.token)

    def _is_good(self, token: str) -> bool:
        """Return True if a token is known to be good without asking the ledger."""
        if is_visitor_token(token):
            return self._visitors.find_client(token) is not None
        return token_hash(token) in self._good

    def check(self, caller: Caller) -> None:
        """Raise RateLimited if the caller is suspect."""
        if self.is_suspect(caller):
            verdict = self._tries.look(caller.client)
            wait = max(1, int(verdict.retry_after_s + 0.999))
            raise RateLimited(
                f"Too many unknown tokens came from this address. Try again in {wait} s.",
                headers=name_quota(TOKEN_TRIES, verdict.reset_s, wait),
                retry_after_seconds=wait,
                limit=TOKEN_TRIES.name,
            )

    async def check_funds(self, operation: Operation, token: str, caller: Caller) -> int:
        """Return the credits of a token that can pay for a call. Raise PaymentRequired."""
        try:
            left = await self._ledger.balance(token)
        except InvalidToken:
            self.record(caller, is_valid=False)
            raise
        self.record(caller, is_valid=True)
        if left < operation.credits:
            raise InsufficientCredits(
                f"This call costs {operation.credits} credits, but only {left} are left. {operation.lack}".rstrip(),
                required=operation.credits,
                credits_remaining=left,
            )
        return left

    def record(self, caller: Caller, *, is_valid: bool) -> None:
        """Record the ledger's verdict on the caller's token."""
        if caller.token is None:
            return
        if is_valid:
            if not is_visitor_token(caller.token):
                self._good[token_hash(caller.token)] = True
        elif caller.limited:
            self._tries.take(caller.client)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call, the same for every face.

    `sale` is that of a paid call; for other calls of a token's owner it has only the credits left. `way` says whether
    the answer was made for this call, cached, or repeated for its Idempotency-Key.
    """

    rendered: RenderedResponse
    limit_states: list[LimitState] = field(default_factory=list)
    sale: PaidCallResult | None = None
    way: Way = "made"
    key: Hashable | None = None  # under which a free answer is cached
    unchanged: bool = False  # the client already has a free answer's bytes: a 304 is enough
    settlement: dict[str, Any] | None = None  # x402: how the payment that came with the call was settled

    @classmethod
    def of_sale(cls, sale: PaidCallResult, caller: Caller | None = None) -> "Outcome":
        """Return the outcome of a sale. It carries the whole receipt unless the caller asked for a reference."""
        is_reference = caller is not None and caller.receipt_reference
        return cls(sale.rendered, sale=replace(sale, receipt=None) if is_reference else sale)

    @property
    def hit(self) -> bool:
        return self.way == "cached"

    @property
    def alerts(self) -> tuple[str, ...]:
        return () if self.sale is None else self.sale.alerts

    @property
    def credits_remaining(self) -> int | None:
        return None if self.sale is None else self.sale.remaining

    @property
    def charged(self) -> int:
        return 0 if self.sale is None else self.sale.charged

    @property
    def no_charge(self) -> str | None:
        """Why a premium answer was not charged, or None."""
        return None if self.sale is None else self.sale.reason

    @property
    def receipt_id(self) -> str | None:
        return None if self.sale is None else self.sale.receipt_id

    @property
    def receipt(self) -> str | None:
        return None if self.sale is None else self.sale.receipt

    @property
    def note(self) -> ChargeNote | None:
        """What the answer says of the call on transports without headers, or None."""
        return None if self.sale is None else self.sale.note


class Pipeline:
    """Makes calls."""

    def __init__(
        self,
        answers: ResponseCache,
        limits: CallLimits,
        money: CallMoney,
        visitors: VisitorTokens,
        metrics: Metrics,
        usage: Usage,
    ) -> None:
        self.answers = answers
        self.metrics = metrics
        self.usage = usage
        self.ledger = money.ledger
        self.limits, self.personal, self.premium = limits.free, limits.personal, limits.premium
        self.pages = limits.pages
        self.asked_at: dict[str, float] = {}  # when each tool that the background keeps fresh was last called
        self.tokens = TokenChecks(
            money.ledger, visitors, monotonic=answers.clock.monotonic, enabled=limits.free.enabled
        )
        self.peek = answers.peek
        self.paid_calls = PaidCallRunner(answers, money, metrics, limits.uncharged)
        self._actions = KeyedActions(money.idempotency)
        self._x402 = money.x402

    async def call(
        self,
        operation: Operation,
        sent: Mapping[str, Any],
        caller: Caller,
        receive: Receive | None = None,
        has_bytes: Callable[[RenderedResponse], bool] | None = None,
    ) -> Outcome:
        """Check the arguments that a caller sent and answer the call. The parameters are those of `Call`.

        Raises:
            CallRejected: the caller gets no payload, and nothing was charged.
            Disconnected: the caller disconnected while a paid answer was made; nothing was charged.
        """
        count = self._count if tracing.tracer is None else self._count_in_span
        return await count(operation, caller, self._check_and_answer(operation, sent, caller, receive, has_bytes))

    async def answer(self, call: Call, rendered: RenderedResponse | None = None) -> Outcome:
        """Answer a call whose arguments are checked, with the answer that `peek` found, if any. Raise as `call`."""
        count = self._count if tracing.tracer is None else self._count_in_span
        return await count(call.operation, call.caller, self._answer(call, rendered))

    async def check(self, operation: Operation, sent: Mapping[str, Any], caller: Caller) -> int:
        """Check a paid call without running or charging it, and return the credits left. Raise what `call` raises, but
        never an offer: a client that accepts one would pay for a response without a body.
        """
        validate_arguments(operation, sent)
        token = await self._admit_buyer(operation, caller)
        return await self.tokens.check_funds(operation, token, caller)

    def invite(self, operation: Operation, caller: Caller) -> None:
        """Raise UnpaidCall with an offer for a paid call of a caller who sent neither a token nor a payment.

        Return if this operation is not sold by x402, or if the caller can pay.
        """
        if self._x402 is None or not operation.credits or caller.token is not None or caller.payment is not None:
            return
        rejected = UnpaidCall(f"{operation.name} is called with {operation.method}. Pay for it as `accepts` says.")
        self._x402.add_offer(operation, rejected)
        raise rejected

    async def admit_cached(
        self, operation: Operation, key: Hashable, client: str | None, agent: str, now: float, *, unchanged: bool
    ) -> list[LimitState]:
        """Count a free call that is answered with what `peek` found, and return the state of the client's limits.

        `client` is None for callers without limits. `unchanged` says that the client already has the answer.

        Raises:
            RateLimited: the client has to wait; the call is counted as refused.
        """
        try:
            limit_states = await self._admit_free(operation, key, client, None, spaced=not unchanged)
        except RateLimited as rejected:
            self.metrics.called(operation.name, operation.tier, rejected.code, 0.0)
            self.usage.count(agent, operation.endpoint, rejected.status, operation.tier, now)
            raise
        self.count_hit(operation, now, agent, 304 if unchanged else 200)
        return limit_states

    @property
    def takes_x402(self) -> bool:
        """True if a call may bring its own payment (x402)."""
        return self._x402 is not None

    def count_hit(self, operation: Operation, now: float, agent: str, status: int = 200) -> None:
        """Count a call that is answered with what `peek` found."""
        self.metrics.hit(operation.name, operation.tier)
        self.usage.count(agent, operation.endpoint, status, operation.tier, now)

    def note_call(self, operation: Operation) -> None:
        """Record the time of a call, for tools that the background keeps fresh while they are called."""
        if operation.follow_s is not None:
            self.asked_at[operation.name] = self.answers.clock.monotonic()

    async def _count(self, operation: Operation, caller: Caller, answering: Awaitable[Outcome]) -> Outcome:
        """Return the outcome of a call, and count how it ended and how long it took, even if it raises.

        Outcomes are `ok`, `stale`, `cancelled` if the caller disconnected, or an error code.
        """
        started = time.perf_counter()
        word, status = InternalError.code, InternalError.status
        try:
            outcome = await answering
            word, status = ("stale" if outcome.rendered.stale else "ok"), 304 if outcome.unchanged else 200
            if operation.credits or operation.needs_token:
                self.tokens.record(caller, is_valid=True)
            if operation.tier is not Tier.FREE:
                self.tokens.forget_credits()
            return outcome
        except CallRejected as rejected:
            word, status = rejected.code, rejected.status
            if isinstance(rejected, InvalidToken):
                self.tokens.record(caller, is_valid=False)
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

    async def _count_in_span(self, operation: Operation, caller: Caller, answering: Awaitable[Outcome]) -> Outcome:
        with tracing.span("call", tool=operation.name, transport=caller.transport, request_id=caller.request_id):
            return await self._count(operation, caller, answering)

    def _add_payment_offer(self, operation: Operation, rejected: CallRejected) -> None:
        """Add an x402 offer to a rejection for lack of payment."""
        if self._x402 is not None and isinstance(rejected, PaymentRequired):
            self._x402.add_offer(operation, rejected)

    async def _check_and_answer(
        self,
        operation: Operation,
        sent: Mapping[str, Any],
        caller: Caller,
        receive: Receive | None,
        has_bytes: Callable[[RenderedResponse], bool] | None,
    ) -> Outcome:
        waiting_client.set(caller.waits_as)
        arguments = validate_arguments(operation, sent)
        # A buyer is admitted before anything else is made, because anyone can ask without a token, at any rate.
        has_payment = caller.payment is not None and self._is_paid_by_itself(caller)
        is_sold = operation.tier is Tier.PREMIUM and not has_payment
        token = await self._admit_buyer(operation, caller) if is_sold else None
        key = build_cache_key(operation, arguments)
        return await self._answer(Call(operation, arguments, key, caller, sent, has_bytes, receive), token=token)

    async def _answer(
        self, call: Call, rendered: RenderedResponse | None = None, *, token: str | None = None
    ) -> Outcome:
        """Answer a call whose arguments are checked. `token` is the buyer's, if it has been admitted already."""
        operation = call.operation
        if operation.follow_s is not None:
            self.note_call(operation)
        if operation.tier is Tier.PREMIUM:
            return await self._answer_paid(call, rendered, token)
        if operation.personal:
            with name_storage_failure():
                return await self._answer_personal(call)
        return await self._answer_free(call)

    async def _answer_free(self, call: Call) -> Outcome:
        """Answer a free call from the cache, or make the answer."""
        operation, caller = call.operation, call.caller
        cached = self.answers.fresh(operation, call.arguments, call.key)
        unchanged = cached is not None and call.is_unchanged(show_answer(caller, cached))
        distinct = find_distinct_quota(operation, call.arguments)
        client = await self._find_limited_client(call)
        limit_states = await self._admit_free(operation, call.key, client, distinct, spaced=not unchanged)
        place = client if operation.spaced and not unchanged else None
        try:
            answer = cached or await self.answers.make(operation, call.arguments, call.key)
        except InvalidArguments as refusal:
            if place is not None and (distinct is not None or not refusal.asked_upstream):
                self.limits.give_back_spacing(place, operation.name, call.key)
            raise
        rendered = show_answer(caller, answer)
        if not unchanged and call.is_unchanged(rendered):
            unchanged = True
            if place is not None:
                self.limits.give_back_spacing(place, operation.name, call.key)
        sale = await self._describe_account(call, client, rendered)
        way: Way = "made" if cached is None else "cached"
        return Outcome(rendered, limit_states, sale, way, key=call.key, unchanged=unchanged)

    async def _describe_account(
        self, call: Call, client: str | None, rendered: RenderedResponse
    ) -> PaidCallResult | None:
        """Return what a free answer says of the caller's token on transports that say it; None if there is nothing.

        `client` is the name that limits count by, if they do: the address if the token is not valid.
        """
        if not says_charge(call.caller) or (client is not None and not client.startswith(TOKEN_CLIENT)):
            return None
        remaining = await self.tokens.ask_credits(call.caller)
        return None if remaining is None else PaidCallResult(rendered, 0, remaining)

    async def _find_limited_client(self, call: Call) -> str | None:
        """Return the name that the limits of a free call count by, or None if none applies."""
        operation, caller = call.operation, call.caller
        if not caller.limited or not self.limits.enabled or not (operation.spaced or operation.quotas):
            return None
        return await self.tokens.identify_client(caller)

    async def _admit_free(
        self,
        operation: Operation,
        key: Hashable,
        client: str | None,
        distinct: tuple[Quota, str] | None,
        *,
        spaced: bool,
    ) -> list[LimitState]:
        """Count a free call in every limit that applies, or in none if one of them refuses the call.

        Return the state of the client's limits. Raise RateLimited.
        """
        if client is None or not self.limits.enabled:
            return []
        limit_states: list[LimitState] = []
        try:
            if operation.quotas:
                await self.personal.look(client, operation.name, operation.quotas)
            if operation.spaced:
                limit_states = await self.limits.count(
                    client, operation.name, question=key, spaced=spaced, distinct=distinct
                )
            if operation.quotas:
                await self.personal.count(client, operation.name, operation.quotas)
        except RateLimited as rejected:
            self._say_what_helps(rejected, key, client)
            raise
        return limit_states

    def _say_what_helps(self, rejected: RateLimited, key: Hashable, client: str) -> None:
        """Add to the refusal of a free call whether waiting brings other data, and where limits of one's own are."""
        kept, now = self.answers.find_newest(key), self.answers.clock.now()
        if kept is not None:
            left = kept.left(now.timestamp())
            if left > rejected.extra["retry_after_seconds"]:
                until = (now + timedelta(seconds=left)).replace(microsecond=0)
                rejected.detail += f" Waiting brings the same data until {until:%H:%M:%S} UTC, in {left} s."
                rejected.extra["same_data_until"] = iso(until)
            else:
                rejected.detail += " By then there may be newer data."
        if not client.startswith((TOKEN_CLIENT, VISITOR_CLIENT)):
            rejected.detail += " A visitor token, which is free, has limits of its own: `visitor_token` says where."
            rejected.extra["visitor_token"] = VISITOR_TOKENS

    async def _answer_personal(self, call: Call) -> Outcome:
        """Return an answer for this caller alone. It is made for each call, knowing the caller, and never cached."""
        operation, caller = call.operation, call.caller
        if not operation.needs_token and is_visitor_token(caller.token):
            self.tokens.identify_visitor(caller)
            self.tokens.check(caller)
            caller = replace(caller, token=None)  # what is bought goes to a token with credits, as for anyone without
        self.tokens.check(caller)
        token = self.tokens.require(operation, caller) if operation.needs_token else None
        remaining = None if token is None else await self.ledger.balance(token)
        await self.count_personal(caller, operation.name, operation.quotas)
        act = partial(self._compose_personal, operation, call.arguments, caller)
        known = replace(call, caller=caller)
        rendered, is_repeated = await self._actions.once(known, act) if known.is_keyed_action else (await act(), False)
        settlement = await self._x402.find_settlement(caller.payment) if self._x402 and caller.payment else None
        way: Way = "repeated" if is_repeated else "made"
        return Outcome(rendered, sale=PaidCallResult(rendered, 0, remaining), way=way, settlement=settlement)

    async def count_personal(self, caller: Caller, tool: str, quotas: Iterable[tuple[int, float]] = ()) -> None:
        """Count something that is done for this caller alone like a call of a tool, and have it wait as this caller.

        Raise RateLimited over the limit, with nothing counted.
        """
        waiting_client.set(caller.waits_as)
        if caller.limited:
            await self.personal.count(await self.tokens.identify_client(caller), tool, quotas)

    async def _compose_personal(self, operation: Operation, arguments: BaseModel, caller: Caller) -> RenderedResponse:
        rendered = await self.answers.compose(operation, arguments, caller)
        if rendered.nothing:
            raise TookTooLong()
        return rendered

    def _is_paid_by_itself(self, caller: Caller) -> bool:
        """Return True if a payment comes with the call, so that no token pays for it."""
        return caller.payment is not None and self._x402 is not None

    async def _answer_paid(self, call: Call, rendered: RenderedResponse | None, token: str | None) -> Outcome:
        operation, caller = call.operation, call.caller
        if self._x402 is not None and self._is_paid_by_itself(caller):
            if caller.limited:
                await self.premium.count(caller.client, operation.name)
            sell = partial(self._x402.sell, operation, call.arguments, call.sent, caller)
            sale, settlement = await run_unless_disconnected(call.receive, sell)
            return replace(Outcome.of_sale(sale), settlement=settlement)
        token = token or await self._admit_buyer(operation, caller)
        sale, is_repeated = await self.paid_calls.sell(call, token, rendered)
        outcome = Outcome.of_sale(sale, caller)
        return replace(outcome, way="repeated") if is_repeated else outcome

    async def _admit_buyer(self, operation: Operation, caller: Caller) -> str:
        """Count a paid call against its limit, and return the caller's token. Raise PaymentRequired, RateLimited."""
        token = self.tokens.require(operation, caller)
        if caller.limited:
            await self.premium.count(f"token {token_hash(token).hex()}", operation.name)
        return token


@contextmanager
def name_storage_failure() -> Iterator[None]:
    """Raise the StorageFailed behind a BillingUnavailable, so that the caller learns that the storage failed."""
    try:
        yield
    except BillingUnavailable as refusal:
        if isinstance(refusal.__cause__, StorageFailed):
            raise refusal.__cause__ from None
        raise
