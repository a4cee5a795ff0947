"""The requests of sister services in the ledger's terms: whose call it is, what is refused, what is settled."""

import pytest

from tests.calls.parts import START
from tests.ledger.ledgers import token
from toolserver.clock import ManualClock
from toolserver.errors import BillingUnavailable, PaymentRequired
from toolserver.ledger.client.messages import SILENT, Commit, Validate
from toolserver.ledger.memory import MemoryLedger
from toolserver.ledger.server.handlers import LedgerHandlers, NotAllowed

RICH, POOR = token(1), token(2)
SERVICES = ("b", "c")


@pytest.fixture
def ledger():
    ledger = MemoryLedger(ManualClock(START))
    ledger.fund(RICH, 10)
    ledger.fund(POOR, 1)
    return ledger


@pytest.fixture
def handlers(ledger):
    return LedgerHandlers(ledger)


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


async def test_a_commit_without_a_call_is_charged_at_once(ledger, handlers):
    assert (await handlers.commit(Commit(token=RICH, cost=3), SERVICES)).credits_charged == 3
    assert (await handlers.commit(Commit(token=RICH, cost=3, outcome="release"), SERVICES)).credits_charged == 0
    assert (await handlers.commit(Commit(token=POOR, cost=3), SERVICES)).reason == "insufficient_credits"
    assert await ledger.balance(RICH) == 7


async def test_a_ledger_that_is_out_of_order_is_no_refusal(ledger, handlers, monkeypatch):
    async def fail(*given, **named):
        raise BillingUnavailable("out of order")

    monkeypatch.setattr(ledger, "reserve", fail)
    with pytest.raises(PaymentRequired) as caught:
        await handlers.validate(Validate(cost=2, token=RICH), SERVICES)
    assert caught.value.code == "billing_unavailable"
