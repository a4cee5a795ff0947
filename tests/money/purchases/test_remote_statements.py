"""A statement at a service that follows a ledger is that of the ledger's owner."""

from datetime import UTC, datetime

from tests.money.purchases.test_remote import URL, saying
from toolserver.core.account_statement import StatementRange
from toolserver.money.purchases.remote import RemoteStatements, open_remote_purchases

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
ENTRY = {
    **{"at": "2027-01-15T08:00:00Z", "kind": "call", "credits": -2, "call_id": "call_1", "endpoint": "/api/pro/x"},
    **{"state": "posted", "receipt_id": "rcpt_1", "no_charge_reason": None, "transaction": None, "new": 1},
}


async def test_the_owner_is_asked_with_the_callers_token_and_range():
    transport, asked = saying(200, {"credits": 5, "entries": [ENTRY], "next_cursor": "0" * 16})
    async with open_remote_purchases(URL, transport=transport) as desk:
        found = await RemoteStatements(desk).read("svc_live_x", StatementRange(AT, None, "f" * 16, 7))

    assert (found.credits, found.cursor) == (5, "0" * 16)
    assert found.lines[0][:4] == (AT, "call", -2, "call_1")
    assert found.lines[0].receipt_id == "rcpt_1"
    assert asked[0].headers["authorization"] == "Bearer svc_live_x"
    assert dict(asked[0].url.params) == {"from": "2027-01-15T08:00:00.000Z", "cursor": "f" * 16, "limit": "7"}
