"""A buyer reads over REST what happened to the credits, and the receipts named there are had."""

import json

import pytest

from tests.calls.parts import POOR, RICH, engine
from tests.calls.toy import FIRST, SECOND, premium_report
from tests.requirements import proves
from tools.account.account_statement import account_statement
from toolserver.errors import InvalidArguments, RevokedToken
from toolserver.registry.registry import Registry, operation_of

REGISTRY = Registry([operation_of(premium_report), operation_of(account_statement)])
PATH = "/api/payment/statement"


@pytest.fixture
async def made():
    async with engine(REGISTRY) as e:
        for url, value in ((FIRST, 3), (SECOND, 4)):
            e.internet.serves(url, {"value": value})
        yield e


async def read(made, token=RICH, **given):
    outcome = await made.call("account_statement", given, token=token)
    return json.loads(outcome.rendered.payload)


@proves("statement.entries")
async def test_a_call_and_what_paid_for_it_stand_in_the_statement(made):
    charged = await made.call("premium_report", token=RICH)

    body = await read(made)

    assert [entry["kind"] for entry in body["entries"]] == ["call", "credit"]
    assert body["entries"][0]["credits"] == -charged.charged
    assert body["entries"][0]["endpoint"] == operation_of(premium_report).path
    assert body["credits"] == sum(entry["credits"] for entry in body["entries"]) == charged.credits_remaining
    assert (await read(made, token=POOR))["entries"] == []


@proves("statement.pages")
async def test_the_cursor_and_the_span_of_time_are_taken(made):
    await made.call("premium_report", token=RICH)
    first = await read(made, limit=1)
    rest = await read(made, limit=1, cursor=first["next_cursor"])

    assert [first["entries"][0]["kind"], rest["entries"][0]["kind"]] == ["call", "credit"]
    assert rest["next_cursor"] is None
    for span, count in (("2027-01-15", 2), ("2027-01-15T08:00:00Z", 2), ("2027-01-15T09:00:00+00:00", 0)):
        assert len((await read(made, **{"from": span}))["entries"]) == count
    assert (await read(made, to="2027-01-15"))["entries"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"from": "yesterday"},
        {"from": "9999-12-31T23:59:59-23:59"},
        {"to": "0001-01-01T00:00:00+23:59"},
        {"from": 12},
        {"cursor": "1"},
        {"cursor": "f" * 16},
        {"limit": 501},
        {"since": "x"},
    ],
)
async def test_arguments_that_mean_nothing_are_refused(made, wrong):
    with pytest.raises(InvalidArguments):
        await read(made, **wrong)


async def test_a_revoked_token_reads_nothing(made):
    await made.ledger.revoke((await made.ledger.standing(RICH)).fingerprint, "lost")
    with pytest.raises(RevokedToken):
        await read(made)
