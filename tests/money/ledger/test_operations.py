"""The laws of the books under any history: a model that knows only sums walks beside the ledger."""

import asyncio
import tempfile
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.calls.parts import START
from tests.money.ledger.ledgers import KINDS, faults, opened, token
from tests.requirements import proves
from tests.size import sized
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import InsufficientCredits, InvalidToken, PaymentRequired, ToolserverError
from toolserver.money.ledger.allowance import DAY_MS, AllowanceTerms, draft_allowance
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.operations import (
    Charge,
    LedgerOperation,
    Mint,
    Needs,
    Reserve,
    Revoke,
    Settle,
    UnknownCall,
    WithdrawCredits,
    outcome_of,
    release_expired,
)
from toolserver.money.ledger.protocol import CallReused, CauseReused
from toolserver.money.ledger.state import LedgerState, key_of

TOKENS = st.integers(0, 2)
CALLS = st.integers(0, 11)
CREDITS = st.integers(1, 6)
REASONS = st.sampled_from([None, None, "5xx", "cancelled", "something else"])
SPENDING = st.tuples(st.sampled_from(["reserve", "charge"]), CALLS, TOKENS, CREDITS, st.integers(1, 90))
SETTLING = st.tuples(st.just("settle"), CALLS, REASONS)


@dataclass
class Call:
    """What the model knows of one: free in the end, held until then, or paid."""

    token: int
    credits: int
    expires_at: float
    held: bool = True
    paid: bool = False


async def withdraw(ledger, key, credits, cause):
    """Apply the operation where the credits are, as a store of refunds does."""
    operation, owner = WithdrawCredits(key, credits, cause), getattr(ledger, "owner", ledger)
    if isinstance(owner, MemoryLedger):
        return operation.on(owner.load())
    return await owner.file.together(owner.apply_group, operation)


class Laws(RuleBasedStateMachine):
    """One history of a ledger. `kind` is set by the test."""

    kind = ""

    def __init__(self):
        super().__init__()
        self.around, self.open, self.clock = ExitStack(), AsyncExitStack(), ManualClock(START)
        self.folder = Path(self.around.enter_context(tempfile.TemporaryDirectory()))
        self.portal = self.around.enter_context(start_blocking_portal())
        self.ledger = self.run(self.open.enter_async_context(opened(self.kind, self.folder, self.clock)))
        self.minted, self.causes, self.calls, self.revoked = {}, {}, {}, set()
        self.withdrawn: dict[int, tuple[int, int]] = {}

    def run(self, awaitable):
        async def whole():
            return await awaitable

        return self.portal.call(whole)

    def teardown(self):
        self.run(self.open.aclose())
        self.around.close()

    def left(self, number):
        taken = sum(c.credits for c in self.calls.values() if c.token == number and (c.held or c.paid))
        back = sum(credits for owner, credits in self.withdrawn.values() if owner == number)
        return self.minted[number] - taken - back

    def expected(self, step):
        """What the model says of a step, as a name of an error or as figures; it makes the step itself."""
        return getattr(self, f"expect_{step[0]}")(*step[1:])

    def expect_reserve(self, call, number, credits, ttl):
        known = self.calls.get(call)
        if number not in self.minted:
            return "invalid_token"
        if number in self.revoked:
            return "expired"
        if known and (known.token, known.credits) != (number, credits):
            return "CallReused"
        if not known and self.left(number) < credits:
            return "insufficient_credits"
        if not known:
            self.calls[call] = Call(number, credits, self.clock.time() + ttl)
        return self.left(number)

    def expect_charge(self, call, number, credits, ttl):
        refusal = self.expect_reserve(call, number, credits, 0)
        return refusal if isinstance(refusal, str) else self.expect_settle(call, None)

    def expect_settle(self, call, reason):
        known = self.calls.get(call)
        if known is None:
            return "UnknownCall"
        known.paid = reason is None and (known.held or known.paid)
        known.held = False
        return known.credits if known.paid else 0, self.left(known.token)

    async def really(self, step):
        try:
            return await getattr(self, f"really_{step[0]}")(*step[1:])
        except PaymentRequired as refusal:
            return refusal.code
        except ToolserverError as refusal:
            return type(refusal).__name__

    async def really_reserve(self, call, number, credits, ttl):
        return (await self.ledger.reserve(f"c{call}", token(number), credits, endpoint="/x", ttl_s=ttl)).remaining

    async def really_charge(self, call, number, credits, ttl):
        settled = await self.ledger.charge(f"c{call}", token(number), credits, endpoint="/x")
        return settled.charged, settled.remaining

    async def really_settle(self, call, reason):
        settled = await self.ledger.settle(f"c{call}", no_charge=reason)
        return settled.charged, settled.remaining

    @rule(steps=st.lists(SPENDING | SETTLING, min_size=1, max_size=6))
    def act(self, steps):
        """Some steps asked for at the same moment; they are done in that order, and none spoils another."""
        expected = [self.expected(step) for step in steps]

        async def together():
            return await asyncio.gather(*(self.really(step) for step in steps))

        assert self.run(together()) == expected

    @rule(number=TOKENS, credits=CREDITS, cause=st.integers(0, 5))
    def mint(self, number, credits, cause):
        try:
            minted = self.run(self.ledger.mint(token(number), credits, cause=f"m{cause}"))
        except CauseReused:
            assert self.causes[cause] != (number, credits)
        except PaymentRequired:
            assert number in self.revoked
        else:
            assert minted.replayed == (cause in self.causes)
            if not minted.replayed:
                self.minted[number] = self.minted.get(number, 0) + credits
                self.causes[cause] = (number, credits)
            assert self.causes[cause] == (number, credits)
            assert minted.remaining == self.left(number)

    @rule(number=TOKENS, credits=CREDITS, cause=st.integers(0, 3))
    def withdraw(self, number, credits, cause):
        """The operator takes unspent credits back, once for each cause."""
        before = self.withdrawn.get(cause)
        try:
            done = self.run(withdraw(self.ledger, token_hash(token(number)).hex(), credits, f"refund:{cause}"))
        except CauseReused:
            assert before not in (None, (number, credits))
        except InsufficientCredits:
            assert before is None
            assert self.left(number) < credits
        except InvalidToken:
            assert number not in self.minted
        else:
            assert done.replayed == (before == (number, credits))
            if not done.replayed:
                assert before is None
                self.withdrawn[cause] = (number, credits)
            assert done.remaining == self.left(number) >= 0

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds):
        self.clock.advance(seconds)
        late = [c for c in self.calls.values() if c.held and c.expires_at <= self.clock.time()]
        assert self.run(self.ledger.sweep()) == len(late)
        for call in late:
            call.held = False

    @rule(number=TOKENS)
    def revoke(self, number):
        if number in self.minted and number == 2:
            fingerprint = self.run(self.ledger.standing(token(number))).fingerprint
            assert self.run(self.ledger.revoke(fingerprint, "law")) == (number not in self.revoked)
            self.revoked.add(number)

    @rule()
    def the_process_ends_and_another_begins(self):
        if self.kind == "memory":
            return
        self.run(self.open.aclose())
        self.ledger = self.run(self.open.enter_async_context(opened(self.kind, self.folder, self.clock)))

    @invariant()
    def what_is_left_is_what_was_minted_less_what_was_taken(self):
        for number in self.minted:
            standing = self.run(self.ledger.standing(token(number)))
            held = sum(c.credits for c in self.calls.values() if c.token == number and c.held)
            assert (standing.credits, standing.held) == (self.left(number), held)
            assert standing.credits >= 0

    @invariant()
    def the_books_balance(self):
        assert self.run(faults(self.ledger)) == []


WHO = key_of(token(0))
SPENDING_OPERATIONS = pytest.mark.parametrize("spend", [Charge, Reserve])


@pytest.fixture
def books():
    """The rules' own state, with five credits on one token."""
    books = LedgerState(0)
    Mint(WHO, 5, "m", "acct_1").on(books)
    return books


def stand(books):
    """What may be spent, what is set aside, and the state of each call."""
    account = next(account for account in books.accounts.values() if account.id == books.tokens[WHO].account)
    return account.spendable, account.pending, {hold.call_id: hold.state for hold in books.holds.values()}


@SPENDING_OPERATIONS
def test_who_has_less_than_a_call_costs_is_refused_and_keeps_it(books, spend):
    with pytest.raises(InsufficientCredits):
        spend("c1", WHO, 6, "/x").on(books)
    assert stand(books) == (5, 0, {})


@SPENDING_OPERATIONS
def test_the_last_credit_can_be_spent(books, spend):
    assert spend("c1", WHO, 5, "/x").on(books).remaining == 0


@SPENDING_OPERATIONS
def test_a_call_is_repeated_at_its_own_price_only(books, spend):
    spend("c1", WHO, 2, "/x").on(books)
    assert spend("c1", WHO, 2, "/x").on(books).replayed
    with pytest.raises(CallReused):
        spend("c1", WHO, 1, "/x").on(books)
    assert stand(books)[0] == 3


def test_a_charge_that_is_released_comes_back_once(books):
    Charge("c1", WHO, 2, "/x").on(books)
    assert [Settle("c1", "5xx").on(books).replayed for _ in range(2)] == [False, True]
    assert stand(books) == (5, 0, {"c1": "reversed"})


def test_a_token_is_revoked_once_for_its_first_reason(books):
    assert [Revoke(WHO, reason).on(books) for reason in ("leaked", "lost")] == [True, False]
    assert books.tokens[WHO].revoke_reason == "leaked"


def test_a_reservation_and_its_settlement_say_everything_about_them(books):
    books.now = 7000
    reserve = Reserve("c1", WHO, 2, "/x", "b", 9500)
    assert [reserve.on(books) for _ in range(2)] == [
        ("c1", 2, 3, 9.5, "open", False),
        ("c1", 2, 3, 9.5, "open", True),
    ]
    hold = books.holds["c1"]
    assert (hold.endpoint, hold.service, hold.transfer, hold.settled_at, hold.day) == ("/x", "b", 2, None, 0)
    books.now = 8000
    assert Settle("c1", None).on(books) == ("c1", 2, 3, None, "posted", False, ())
    assert (hold.settled_at, hold.reason) == (8000, None)
    assert Settle("c1", None).on(books) == ("c1", 2, 3, None, "posted", True, ())
    books.now = 9000
    assert Settle("c1", "5xx").on(books) == ("c1", 0, 5, "5xx", "reversed", False, ())
    assert (hold.settled_at, hold.reason) == (9000, "5xx")
    assert reserve.on(books) == ("c1", 2, 5, 9.5, "reversed", True)
    assert [(t.kind, t.debit, t.credit, t.amount, t.resolves) for t in books.transfers[1:]] == [
        ("pending", 4, 2, 2, None),
        ("post", 4, 2, 2, 2),
        ("reverse", 2, 4, 2, 2),
    ]


def test_a_charge_in_one_step_says_everything_about_it_and_ends_a_reservation(books):
    books.now = 7000
    assert Charge("c1", WHO, 2, "/x", "b").on(books) == ("c1", 2, 3, None, "posted", False, ())
    assert (books.holds["c1"].settled_at, books.holds["c1"].service) == (7000, "b")
    assert Charge("c1", WHO, 2, "/x", "b").on(books) == ("c1", 2, 3, None, "posted", True, ())
    Reserve("c2", WHO, 3, "/x").on(books)
    assert Charge("c2", WHO, 3, "/x").on(books) == ("c2", 3, 0, None, "posted", False, ())
    with pytest.raises(InsufficientCredits) as refused:
        Charge("c3", WHO, 1, "/x").on(books)
    assert refused.value.extra == {"required": 1, "credits_remaining": 0}


def test_a_voided_call_cannot_be_charged_and_keeps_the_first_64_characters_of_its_reason(books):
    Reserve("c1", WHO, 2, "/x").on(books)
    assert Settle("c1", "r" * 65).on(books) == ("c1", 0, 5, "r" * 64, "voided", False, ())
    for again in (Settle("c1", None), Settle("c1", "later"), Charge("c1", WHO, 2, "/x")):
        assert again.on(books) == ("c1", 0, 5, "r" * 64, "voided", True, ())
    assert outcome_of(Settle("c9", "5xx"), books).args == ("c9 was never reserved",)
    assert isinstance(outcome_of(Settle("c9", None), books), UnknownCall)


@pytest.mark.parametrize("make", [lambda n: Mint(WHO, n, "m", "r"), lambda n: Charge("c", WHO, n, "/x")])
def test_an_amount_is_a_whole_number_from_one_to_a_quadrillion(make):
    for good in (1, 10**15):
        assert make(good).credits == good
    for wrong in (0, -1, 10**15 + 1, 1.0, True, "1"):
        with pytest.raises(ValueError, match="not a valid number of credits"):
            make(wrong)


def test_credits_are_minted_once_for_a_cause_and_never_for_another_token_or_amount(books):
    assert Mint(WHO, 3, "again", "acct_9").on(books) == (3, 8, False)
    assert Mint(WHO, 3, "again", "acct_9").on(books) == (3, 8, True)
    for other in (Mint(WHO, 4, "again", "r"), Mint(key_of(token(1)), 3, "again", "r")):
        with pytest.raises(CauseReused):
            other.on(books)
    assert books.tokens[WHO].ref == "acct_1"
    assert Mint(key_of(token(1)), 3, "first", "acct_2").on(books) == (3, 3, False)
    assert books.tokens["acct_2"].hash == key_of(token(1))


def test_reservations_are_expired_from_their_last_moment_on(books):
    for call, expires_at in (("c1", 10), ("c2", 11), ("c3", 10), ("c4", 9)):
        Reserve(call, WHO, 1, "/x", expires_at=expires_at).on(books)
    Settle("c3", None).on(books)
    books.now = 10
    assert list(release_expired(books)) == [Settle("c1", "expired"), Settle("c4", "expired")]


def test_calls_of_an_allowance_count_for_the_day_on_which_they_were_reserved(books):
    child = draft_allowance(AllowanceTerms("child", 4), "c" * 64, 0)
    child.parent = WHO
    books.keep_allowance(child)
    books.now = 3 * DAY_MS
    books.changed_allowances.clear()
    assert Reserve("c1", child.hash, 3, "/x").on(books).remaining == 1
    assert (books.holds["c1"].allowance, books.holds["c1"].day, child.spent) == (child.id, 3, 3)
    assert books.changed_allowances == {child.id: child}
    with pytest.raises(CallReused):
        Reserve("c1", WHO, 3, "/x").on(books)
    with pytest.raises(InsufficientCredits):
        Charge("c2", child.hash, 2, "/x").on(books)
    assert Settle("c1", None).on(books).remaining == 1
    assert child.spent == 3
    assert Settle("c1", "5xx").on(books).remaining == 4
    assert (child.spent, child.spent_today) == (0, 0)
    with pytest.raises(InvalidToken):
        Mint(child.hash, 1, "x", "r").on(books)
    assert [Revoke(child.hash, "leaked").on(books) for _ in range(2)] == [True, False]
    assert books.tokens[WHO].revoked_at is None


def test_an_unknown_token_is_not_revoked_and_a_revocation_is_dated(books):
    books.now = 6000
    assert Revoke("d" * 64, "leaked").on(books) is False
    assert Revoke(WHO, "leaked").on(books) is True
    assert books.tokens[WHO].revoked_at == 6000


def test_an_operation_says_what_it_needs():
    assert Charge("c1", WHO, 1, "/x").needs() == Reserve("c1", WHO, 1, "/x").needs() == Needs(WHO, "c1")
    assert (Settle("c1", None).needs(), Settle("c1", None, key=WHO).needs()) == (Needs(None, "c1"), Needs(WHO, "c1"))
    assert (Mint(WHO, 1, "m", "r").needs(), Revoke(WHO, "x").needs()) == (Needs(WHO, None, "m"), Needs(WHO))
    assert Needs() == (None, None, None, None, False, False)
    with pytest.raises(NotImplementedError):
        LedgerOperation().needs()


@proves("ledger.contract")
@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_hold_whatever_happens(kind):
    machine = type(f"Laws of {kind}", (Laws,), {"kind": kind})
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    full = 4 if kind.endswith("postgres") else 15  # there each step is a trip to a server
    examples = sized(full, fast=2, long=20 * full)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=20, suppress_health_check=quiet)
    )
