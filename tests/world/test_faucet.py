"""Payments on the simulated chain: made, listed and undone."""

import json

import pytest

from tests.world.toy import T, toy
from toolserver.world.clock import SimClock
from toolserver.world.control import COMMANDS, FROM, ControlRequest
from toolserver.world.request_checks import ControlRefused
from toolserver.world.state import WorldState

TO = "0x" + "Ab" * 20


@pytest.fixture
def state(tmp_path):
    return WorldState(clock=SimClock(T, frozen=True), samples=tmp_path, primaries=[])


async def ask(state, method, body=None, rest="transfer"):
    return await COMMANDS[method, "chain"](ControlRequest(state, toy().routes, rest, {}, json.dumps(body).encode()))


@pytest.mark.parametrize(("usd", "atomic"), [(5, 5_000_000), (0.000001, 1), ("12.345678", 12_345_678)])
async def test_a_transfer_is_an_event_of_so_many_millionths(state, usd, atomic):
    made = await ask(state, "POST", {"to": TO, "amount_usd": usd})

    assert {name: made[name] for name in ("from", "to", "amount")} == {"from": FROM, "to": TO.lower(), "amount": atomic}
    (event,) = await ask(state, "GET")
    assert (event["hash"], event["at"], event["amount"]) == (made["tx_hash"], T, atomic)


async def test_each_transfer_is_a_transaction_of_its_own(state):
    hashes = {(await ask(state, "POST", {"to": TO, "amount_usd": 1}))["tx_hash"] for _ in range(3)}
    assert len(hashes) == len(await ask(state, "GET")) == 3


@pytest.mark.parametrize("usd", [0, -1, True, None, "many", 0.0000001, 10**10, "NaN", [1]])
async def test_an_amount_that_cannot_be_sent_is_refused(state, usd):
    with pytest.raises(ControlRefused, match="amount_usd"):
        await ask(state, "POST", {"to": TO, "amount_usd": usd})
    assert await ask(state, "GET") == []


@pytest.mark.parametrize("to", [None, "0x", TO[:-1], f"{TO}0", 7])
async def test_an_address_that_is_none_is_refused(state, to):
    with pytest.raises(ControlRefused, match="to must be an address"):
        await ask(state, "POST", {"to": to, "amount_usd": 1})


async def test_a_transfer_can_be_undone_once_and_leaves_the_others(state):
    first, second = [await ask(state, "POST", {"to": TO, "amount_usd": usd}) for usd in (1, 2)]

    assert await ask(state, "DELETE", rest=first["tx_hash"].upper().replace("0X", "0x")) == {"undone": first["tx_hash"]}
    assert [each["hash"] for each in await ask(state, "GET")] == [second["tx_hash"]]
    with pytest.raises(ControlRefused, match="no such transfer"):
        await ask(state, "DELETE", rest=first["tx_hash"])


async def test_only_transfers_are_made_here(state):
    with pytest.raises(ControlRefused, match="POST /_sim/chain/transfer"):
        await ask(state, "POST", {"to": TO, "amount_usd": 1}, rest="mint")
