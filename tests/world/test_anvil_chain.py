"""The chain of a world on anvil: payments of every kind, reorganisations, its time, and what stays when it ends."""

import json
from dataclasses import replace

import pytest

import tools.simulated.anvil_routes
import tools.simulated.x402_facilitator
from tests.money.purchases.anvil import binary
from tests.money.x402.chain import program
from tests.month.sandbox import sign_authorization
from tests.ports import reserve_port
from toolserver.world.anvil_chain import LEAP, anvil_chain
from toolserver.world.anvil_node import PLACE_FILE, AnvilMissing, AnvilNode, find_anvil, start_anvil
from toolserver.world.chain import TransferOrder
from toolserver.world.model import ROUTES, Ask
from toolserver.world.rich_accounts import RICH
from toolserver.world.state import SimClock, WorldState

T = 1_800_000_000.0
BUYER, PAYEE, CONTRACT, OTHER_TOKEN = RICH[1], "0x" + "bb" * 20, "0x" + "c0de" * 10, "0x" + "f0e1" * 10
MAIN, SECOND = "mainnet.base.org", "base-rpc.publicnode.com"


@pytest.fixture
def state():
    return WorldState(clock=SimClock(T, frozen=True))


@pytest.fixture
async def chain(state):
    async with anvil_chain(program(), state, None):
        yield state.chain


async def pay(state, usd=1, **more):
    hash = await state.chain.transfer(TransferOrder(BUYER, PAYEE, usd * 10**6, **more))
    await forward(state, 2)
    return hash


async def forward(state, seconds):
    state.clock.advance(seconds)
    await state.chain.follow()


def ask(state, host, method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()
    route, asked = state.chain.serve(ROUTES).find(Ask("POST", host, "/", body=body))
    return json.loads(route.handler(state.world(), asked).body)["result"]


def logs(state, hash, host=MAIN):
    return ask(state, host, "eth_getTransactionReceipt", hash)["logs"]


async def test_a_payment_is_in_the_next_block_of_the_worlds_time(state, chain):
    head = int(ask(state, MAIN, "eth_blockNumber"), 16)
    hash = await pay(state)
    receipt = ask(state, SECOND, "eth_getTransactionReceipt", hash)
    assert (int(receipt["blockNumber"], 16), receipt["status"]) == (head + 1, "0x1")
    assert int(ask(state, MAIN, "eth_getBlockByNumber", "latest", False)["timestamp"], 16) == T + 2
    (paid,) = await chain.list_transfers()
    assert (paid["hash"], paid["to"], paid["amount"], paid["at"]) == (hash, PAYEE, 10**6, T + 2)


async def test_a_contract_pays_and_another_token_is_told_by_its_address(state, chain):
    by_contract, foreign = await pay(state, via=CONTRACT), await pay(state, token=OTHER_TOKEN)
    assert [(log["topics"][1][-40:]) for log in logs(state, by_contract)] == [CONTRACT[2:]]
    assert [log["address"] for log in logs(state, foreign)] == [OTHER_TOKEN]


async def test_a_payment_that_one_server_invents_is_in_its_answers_alone_until_it_is_undone(state, chain):
    hash = await pay(state, known_to=SECOND)
    assert ask(state, MAIN, "eth_getTransactionReceipt", hash) is None
    assert len(logs(state, hash, SECOND)) == 1
    assert await chain.undo(hash)
    assert ask(state, SECOND, "eth_getTransactionReceipt", hash) is None


async def test_a_reorganisation_takes_one_payment_and_mines_another_again_under_its_hash(state, chain):
    await forward(state, 60)
    kept, gone = await pay(state, 3), await pay(state)
    await forward(state, 6)
    assert await chain.reorganise(10, {kept}) == ([gone], [kept])
    assert [each["hash"] for each in await chain.list_transfers()] == [kept]
    assert await chain.undo(kept)
    assert not await chain.undo(gone)
    assert await chain.list_transfers() == []


async def test_a_leap_of_the_clock_costs_few_blocks_and_makes_everything_before_it_final(state, chain):
    hash = await pay(state)
    head = int(ask(state, MAIN, "eth_blockNumber"), 16)
    await forward(state, 40 * 86_400)
    latest = ask(state, MAIN, "eth_getBlockByNumber", "latest", False)
    assert int(latest["number"], 16) == head + LEAP
    assert int(latest["timestamp"], 16) == T + 2 + 40 * 86_400
    final = ask(state, MAIN, "eth_getBlockByNumber", "finalized", False)
    assert int(final["number"], 16) >= int(ask(state, MAIN, "eth_getTransactionReceipt", hash)["blockNumber"], 16)


async def test_the_facilitator_settles_on_anvil_once_and_what_it_invents_is_not_there(state, chain):
    authorization = {"from": BUYER, "to": PAYEE, "value": "2000000", "validAfter": "0", "validBefore": str(int(T) + 99)}
    authorization["nonce"] = "0x" + "07" * 32
    accepted = {"scheme": "exact", "network": "eip155:8453", "asset": tools.simulated.x402_facilitator.USDC}
    body = {
        "paymentPayload": {"payload": {"authorization": authorization, "signature": sign_authorization(authorization)}},
        "paymentRequirements": accepted | {"payTo": PAYEE, "amount": "2000000"},
    }
    call = Ask("POST", tools.simulated.x402_facilitator.HOST, "/settle", body=json.dumps(body).encode())
    route, _ = chain.serve(ROUTES).find(call)
    invented = json.loads(route.forms["drift:invented"](state.world(), call).body)
    assert invented["success"]
    said = json.loads(route.handler(state.world(), call).body)
    await forward(state, 2)
    assert [each["hash"] for each in await chain.list_transfers()] == [said["transaction"]]
    again = json.loads(route.handler(state.world(), call).body)
    assert (again["success"], again["errorReason"]) == (False, "invalid_exact_evm_nonce_already_used")
    assert json.loads(chain.serve(ROUTES).find(replace(call, path="/verify"))[0].handler(state.world(), call).body) == {
        "isValid": False,
        "invalidReason": "invalid_exact_evm_nonce_already_used",
    }


async def test_the_next_chain_of_a_folder_goes_on_where_the_last_one_ended(state, tmp_path):
    async with anvil_chain(program(), state, tmp_path):
        hash = await pay(state)
    async with anvil_chain(program(), state, tmp_path):
        assert [each["hash"] for each in await state.chain.list_transfers()] == [hash]


async def test_an_anvil_whose_demo_was_killed_is_found_again(state, tmp_path):
    left = start_anvil(program(), reserve_port(), state.world().now, tmp_path)  # as a demo does that is killed then
    try:
        async with anvil_chain("/nowhere/anvil", state, tmp_path):
            assert state.chain.node.url == left.url == json.loads((tmp_path / PLACE_FILE).read_text())["url"]
    finally:
        left.stop()


def test_connections_to_what_is_no_anvil_of_ours_are_closed(tmp_path, monkeypatch):
    closed, close = [], AnvilNode.close
    monkeypatch.setattr(AnvilNode, "close", lambda node: (closed.append(node.url), close(node)))
    gone = f"http://127.0.0.1:{reserve_port()}"
    (tmp_path / PLACE_FILE).write_text(json.dumps({"url": gone, "pid": 1}))
    node = start_anvil(program(), reserve_port(), T, tmp_path)
    assert (closed, node.url != gone) == ([gone], True)
    node.stop()


def test_a_machine_without_anvil_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AnvilMissing, match=r"npm install --ignore-scripts @foundry-rs/anvil.*--anvil "):
        find_anvil(None)
    if (there := binary()) is not None:
        assert find_anvil(there) == there
