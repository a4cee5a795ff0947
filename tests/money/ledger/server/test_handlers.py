"""The requests of sister services in the ledger's terms: whose call it is, what is refused, what is settled."""

from contextlib import nullcontext
from dataclasses import asdict

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from toolserver.clock import ManualClock
from toolserver.core.models import iso_ms
from toolserver.errors import BillingUnavailable, PaymentRequired
from toolserver.money.ledger.allowance import AllowanceChange, AllowanceTerms
from toolserver.money.ledger.client.messages import (
    SILENT,
    AllowancesRefused,
    AskAllowances,
    Commit,
    CommitRefused,
    Committed,
    Validate,
    Validated,
)
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.server.api import LedgerHandlers, NotAllowed
from toolserver.money.ledger.state import key_of

RICH, POOR, CHILD = token(1), token(2), token(1000)
SERVICES = ("b", "c")


class FailingLedger(MemoryLedger):
    """A ledger that cannot do what is `out_of_order`."""

    out_of_order = frozenset()

    async def reserve(self, *args, **named):
        self._fail_if("reserve")
        return await super().reserve(*args, **named)

    async def standing(self, who):
        self._fail_if("standing")
        return await super().standing(who)

    async def list_allowances(self, who):
        self._fail_if("list_allowances")
        return await super().list_allowances(who)

    def _fail_if(self, method):
        if method in self.out_of_order:
            raise BillingUnavailable("out of order")


@pytest.fixture
def ledger():
    ledger = FailingLedger(ManualClock(START))
    ledger.fund(RICH, 10)
    ledger.fund(POOR, 1)
    return ledger


@pytest.fixture
def handlers(ledger):
    return LedgerHandlers(ledger, ManualClock(START))


async def test_a_call_is_kept_under_the_name_of_its_service(ledger, handlers):
    said = await handlers.validate(Validate(cost=2, token=RICH, call_id="c1", service="c"), SERVICES)
    assert (said.reservation_id, said.credits_remaining, said.state) == ("c1", 8, "open")
    assert ledger.held["b:c1"].service == "c"
    with pytest.raises(NotAllowed):
        await handlers.validate(Validate(cost=2, token=RICH, service="d"), SERVICES)


async def test_a_question_without_a_cost_reserves_nothing(ledger, handlers):
    said = await handlers.validate(Validate(cost=0, token=RICH), SERVICES)
    assert (said.ok, said.credits_remaining, said.reservation_id) == (True, 10, None)
    assert ledger.held == {}
    await ledger.revoke(said.token_fp, "leaked")
    assert (await handlers.validate(Validate(cost=0, token=RICH), SERVICES)).reason == "expired"


@pytest.mark.parametrize(
    "asked",
    [
        Validate(cost=2),
        Validate(cost=2, token=RICH, account_ref="acct_1"),
        Validate(cost=2, token=RICH, ttl_s=0),
        Validate(cost=2, token=RICH, ttl_s=3601),
        Validate(cost=2, token=RICH, call_id="has space"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_before_anything_is_reserved(ledger, handlers, asked):
    with pytest.raises(ValueError, match=r"token|ttl_s|call_id"):
        await handlers.validate(asked, SERVICES)
    assert ledger.held == {}


@pytest.mark.parametrize(
    ("asked", "charged", "reason"),
    [
        (Commit(call_id="c1"), 2, None),
        (Commit(call_id="c1", outcome="charge"), 2, None),
        (Commit(call_id="c1", outcome="release"), 0, SILENT),
        (Commit(call_id="c1", no_charge_reason="5xx"), 0, "5xx"),
        (Commit(call_id="c1", outcome="charge", no_charge_reason=17), 0, "17"),
    ],
)
async def test_a_reason_releases_whatever_the_outcome_says(handlers, asked, charged, reason):
    await handlers.validate(Validate(cost=2, token=RICH, call_id="c1"), SERVICES)
    said = await handlers.commit(asked, SERVICES)
    assert (said.credits_charged, said.no_charge_reason) == (charged, reason)


async def test_a_commit_of_nothing_is_refused_and_a_token_that_does_not_fit_too(ledger, handlers):
    assert (await handlers.commit(Commit(call_id="c9"), SERVICES)).reason == "reservation_not_found"
    await handlers.validate(Validate(cost=1, token=RICH, call_id="c1"), SERVICES)
    other = await handlers.commit(Commit(call_id="c1", token=POOR, cost=1), SERVICES)
    assert other.reason == "reservation_mismatch"
    assert ledger.held["b:c1"].state == "open"


async def test_a_ledger_that_is_out_of_order_is_no_refusal(ledger, handlers):
    ledger.out_of_order = {"reserve"}
    with pytest.raises(PaymentRequired) as caught:
        await handlers.validate(Validate(cost=2, token=RICH), SERVICES)
    assert caught.value.code == "billing_unavailable"


async def test_a_reservation_is_answered_with_everything_about_it(ledger, handlers):
    asked = Validate(cost=2, token=RICH, call_id="c1", endpoint="/" + "x" * 200, ttl_s=3600)
    standing = await ledger.standing(RICH)
    expected = Validated(
        ok=True,
        sufficient=True,
        reservation_id="c1",
        credits_remaining=8,
        expires_at=iso_ms(START.timestamp() + 3600),
        account_ref=standing.ref.ref,
        token_fp=standing.fingerprint,
        payer=key_of(RICH),
        issued_at=iso_ms(START.timestamp()),
        state="open",
        replayed=False,
    )
    assert await handlers.validate(asked, SERVICES) == expected
    assert ledger.held["b:c1"].endpoint == "/" + "x" * 199
    assert (await handlers.validate(asked, SERVICES)).replayed
    assert await handlers.validate(Validate(cost=0, account_ref=standing.ref.ref), SERVICES) == Validated(
        ok=True,
        sufficient=True,
        credits_remaining=8,
        account_ref=standing.ref.ref,
        token_fp=standing.fingerprint,
        payer=key_of(RICH),
        issued_at=iso_ms(START.timestamp()),
    )


@pytest.mark.parametrize(
    ("call_id", "good"), [("A-z_0.9" * 14, True), ("x" * 100, True), ("x" * 101, False), ("", False)]
)
async def test_a_call_id_has_up_to_a_hundred_harmless_characters(ledger, handlers, call_id, good):
    with nullcontext() if good else pytest.raises(ValueError, match="1 to 100"):
        said = await handlers.validate(Validate(cost=1, token=RICH, call_id=call_id), SERVICES)
        assert said.reservation_id == call_id
    assert list(ledger.held) == ([f"b:{call_id}"] if good else [])


async def test_a_refusal_is_answered_with_what_is_left_and_with_the_cap_that_would_be_crossed(ledger, handlers):
    poor = await handlers.validate(Validate(cost=2, token=POOR), SERVICES)
    assert poor == Validated(ok=False, reason="insufficient_credits", credits_remaining=1, sufficient=False)
    assert await handlers.validate(Validate(cost=2, token=token(9)), SERVICES) == Validated(
        ok=False, reason="invalid_token"
    )
    await ledger.create_allowance(RICH, key_of(CHILD), AllowanceTerms("child", 5))
    capped = await handlers.validate(Validate(cost=6, token=CHILD), SERVICES)
    told = "This call costs 6 credits; the allowance has spent 0 of 5."
    left = {"credits_remaining": 5, "sufficient": False, "cap": "credits", "detail": told}
    assert capped == Validated(ok=False, reason="insufficient_credits", **left)
    assert ledger.held == {}


async def test_a_commit_is_answered_with_how_the_call_ended(handlers):
    await handlers.validate(Validate(cost=2, token=RICH, call_id="c1"), SERVICES)
    done = Committed(ok=True, state="posted", credits_charged=2, balance_after=8)
    both_names = Commit(call_id="c1", reservation_id="c1", token=RICH, cost=2)
    assert await handlers.commit(both_names, SERVICES) == done
    assert (await handlers.commit(Commit(reservation_id="c1"), SERVICES)).replayed
    back = Committed(ok=True, state="reversed", credits_charged=0, balance_after=10, no_charge_reason="5xx")
    assert await handlers.commit(Commit(call_id="c1", no_charge_reason="5xx"), SERVICES) == back


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Commit(call_id="c1", outcome="refund"), "outcome"),
        (Commit(call_id="c1", reservation_id="c2"), "same"),
        (Commit(call_id="c1", token=RICH), "cost is required"),
        (Commit(call_id="c1", token=RICH, account_ref="acct_1", cost=2), "not both"),
        (Commit(call_id="c 1"), "1 to 100"),
        (Commit(call_id="c1", cost=2, token=RICH, account_ref="acct_1"), "either token or account_ref"),
        (Commit(token=RICH, cost=2), "call_id or reservation_id"),
        (Commit(token=RICH, cost=2, outcome="release"), "call_id or reservation_id"),
    ],
)
async def test_a_commit_that_makes_no_sense_settles_nothing(ledger, handlers, asked, told):
    await handlers.validate(Validate(cost=2, token=RICH, call_id="c1"), SERVICES)
    with pytest.raises(ValueError, match=told):
        await handlers.commit(asked, SERVICES)
    assert ledger.held["b:c1"].state == "open"


async def test_a_commit_for_a_service_of_another_key_is_not_allowed(ledger, handlers):
    with pytest.raises(NotAllowed):
        await handlers.commit(Commit(call_id="c1", token=RICH, cost=2, service="d"), SERVICES)
    assert ledger.held == {}


@pytest.mark.parametrize(
    ("who", "cost", "reason"),
    [(RICH, 3, "reservation_not_found"), (RICH, 30, "reservation_not_found"), (token(9), 3, "reservation_mismatch")],
)
async def test_a_commit_of_a_call_that_was_never_reserved_leaves_no_credits_set_aside(
    ledger, handlers, who, cost, reason
):
    asked = Commit(call_id="c9", token=who, cost=cost)
    assert await handlers.commit(asked, SERVICES) == CommitRefused(ok=False, reason=reason)
    assert (await ledger.balance(RICH), await ledger.holds()) == (10, [])


async def test_a_call_of_a_revoked_token_is_settled_and_one_with_another_cost_is_not(ledger, handlers):
    await handlers.validate(Validate(cost=2, token=RICH, call_id="c1"), SERVICES)
    other = await handlers.commit(Commit(call_id="c1", token=RICH, cost=3), SERVICES)
    assert other == CommitRefused(ok=False, reason="reservation_mismatch")
    await ledger.revoke(key_of(RICH), "leaked")
    assert (await handlers.commit(Commit(call_id="c1", token=RICH, cost=2), SERVICES)).credits_charged == 2
    assert await handlers.validate(Validate(cost=0, token=RICH), SERVICES) == Validated(ok=False, reason="expired")


async def test_allowances_are_managed_by_the_token_that_pays(ledger, handlers):
    async def manage(action, **given):
        said = await handlers.manage_allowances(AskAllowances(action=action, token=RICH, **given), SERVICES)
        assert said.ok
        return [asdict(each) for each in said.allowances]

    (made,) = await manage("create", hash=key_of(CHILD), terms=AllowanceTerms("child", 5))
    assert (made["name"], made["hash"], made["credits"]) == ("child", key_of(CHILD), 5)
    change = AllowanceChange(frozenset({"credits"}), AllowanceTerms("other", 7))
    assert await manage("change", id=made["id"], change=change) == [{**made, "credits": 7}]
    assert await manage("list") == [{**made, "credits": 7}]
    now = int(START.timestamp() * 1000)
    assert await manage("revoke", id=made["id"]) == [{**made, "credits": 7, "revoked_at": now}]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"action": "revoke", "token": RICH, "id": "alw_0"}, "not_found"),
        ({"action": "revoke", "token": RICH}, "not_found"),
        ({"action": "list", "token": token(9)}, "invalid_token"),
    ],
)
async def test_a_request_about_allowances_is_refused_with_its_reason(handlers, asked, reason):
    said = await handlers.manage_allowances(AskAllowances(**asked), SERVICES)
    assert said == AllowancesRefused(ok=False, reason=reason, detail=said.detail)
    assert said.detail


@pytest.mark.parametrize(
    "asked",
    [
        {"action": "create", "hash": "c" * 64},
        {"action": "create", "terms": AllowanceTerms("child", 5)},
        {"action": "create", "terms": AllowanceTerms("child", 5), "hash": "C" * 64},
        {"action": "create", "terms": AllowanceTerms("child", 5), "hash": "c" * 63},
        {"action": "create", "terms": AllowanceTerms("child", 5), "hash": "c" * 65},
        {"action": "change", "id": "alw_0"},
    ],
)
async def test_a_request_about_allowances_that_makes_no_sense_creates_none(ledger, handlers, asked):
    with pytest.raises(ValueError, match="create needs terms"):
        await handlers.manage_allowances(AskAllowances(token=RICH, **asked), SERVICES)
    assert await ledger.list_allowances(RICH) == []


@pytest.mark.parametrize("method", ["reserve", "standing", "list_allowances"])
async def test_no_answer_is_made_up_while_the_ledger_is_out_of_order(ledger, handlers, method):
    ledger.out_of_order = {method}
    ask = {
        "reserve": lambda: handlers.commit(Commit(call_id="c1", token=RICH, cost=1), SERVICES),
        "standing": lambda: handlers.validate(Validate(cost=0, token=RICH), SERVICES),
        "list_allowances": lambda: handlers.manage_allowances(AskAllowances(action="list", token=RICH), SERVICES),
    }
    with pytest.raises(BillingUnavailable):
        await ask[method]()
