"""`toolserver sweep`: from the deposits of buyers to the treasury, and what stops on the way."""

import json
from datetime import UTC, datetime

import pytest

from tests.cli.test_purchases import TREASURY, run, sold
from tests.money.purchases.anvil import START, Anvil, started
from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.onchain import confirmed, wallet
from tests.money.purchases.parts import TX, desk
from tests.money.purchases.wallet import DEPOSITS, MNEMONIC, XPUB, private_key
from toolserver.cli.sweep import sweep
from toolserver.clock import ManualClock, SystemClock
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.sql_sweeps import read_swept

SIGNING = ("--key-env", "OPERATOR_KEY", "--account", DEPOSITS)


@pytest.fixture
def chain_clock():
    """It shows the time of the chain's first block."""
    return ManualClock(datetime.fromtimestamp(START, UTC))


@pytest.fixture
def words(monkeypatch):
    """The words of the operator's wallet and the key of a relayer, in the environment."""
    monkeypatch.setenv("OPERATOR_KEY", MNEMONIC)
    monkeypatch.setenv("RELAY_KEY", private_key(3, 0).hex())


@pytest.fixture
async def plan(tmp_path):
    """A plan of one address, as it was written to a file."""
    async with fake_rpc() as fake:
        found = await sold(tmp_path)
        fake.pay(bytes.fromhex(found.wallets[0][2:]), 7.5, TX)
        fake.now += 2000
        settings = {"rpc_urls": json.dumps([fake.url]), "xpub": XPUB}
        done = await run(sweep, "plan", "--data-dir", tmp_path, "--to", TREASURY, "--eth-usd", 3000, **settings)
    assert (done.exit_code, done.stderr) == (0, "")
    (tmp_path / "plan.json").write_text(done.stdout, encoding="utf-8")
    return tmp_path / "plan.json"


async def test_a_plan_has_yield_and_cost(plan):
    made = json.loads(plan.read_text(encoding="utf-8"))
    assert (made["yield_usd"], made["cost"]["usd"], made["to"]) == ("7.500000", "0.001620", TREASURY)
    assert [one["path"] for one in made["authorizations"]] == ["0/0"]


@pytest.mark.usefixtures("words")
async def test_a_plan_is_signed_for_the_named_recipient_without_showing_the_key(plan):
    done = await run(sweep, "sign", plan, *SIGNING, "--to", TREASURY)
    assert done.exit_code == 0
    (one,) = json.loads(done.stdout)["authorizations"]
    assert len(one["signature"]) == 132
    assert done.stderr == f"7.500000 USDC to {TREASURY}\n"
    assert MNEMONIC not in done.output


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((*SIGNING, "--to", "0x" + "11" * 20), "also pays"),
        (("--key-env", "OPERATOR_KEY", "--to", TREASURY), "the key is not the key of"),
        (("--key-env", "RELAY_KEY", "--to", TREASURY), "the key is not the key of"),
        (("--key-env", "NO_SUCH", "--to", TREASURY), "not set"),
        (("--to", TREASURY), "either --key-file or --key-env"),
        (SIGNING, "Aborted"),
    ],
    ids=["another recipient", "another account", "another key", "no key", "no flag", "nobody agrees"],
)
async def test_what_does_not_fit_is_not_signed(plan, flags, why):
    done = await run(sweep, "sign", plan, *flags)
    assert (done.exit_code != 0, done.stdout) == (True, "")
    assert why in done.stderr


@pytest.mark.usefixtures("words")
async def test_nothing_unsigned_or_signed_by_another_is_submitted(plan, tmp_path):
    flags = ("--key-env", "RELAY_KEY", "--data-dir", tmp_path, "--rpc", "http://127.0.0.1:9")
    done = await run(sweep, "submit", plan, *flags)
    assert (done.exit_code, "has no signature" in done.stderr) == (1, True)
    document = json.loads(plan.read_text(encoding="utf-8"))
    document["authorizations"][0]["signature"] = "0x" + "11" * 64 + "1b"
    plan.write_text(json.dumps(document), encoding="utf-8")
    done = await run(sweep, "submit", plan, *flags)
    assert (done.exit_code, "was not made by" in done.stderr) == (1, True)


@pytest.mark.usefixtures("words")
async def test_a_signed_plan_needs_a_server_to_submit_to(plan, tmp_path):
    signed = await run(sweep, "sign", plan, *SIGNING, "--to", TREASURY)
    plan.write_text(signed.stdout, encoding="utf-8")
    flags = ("--key-env", "RELAY_KEY", "--data-dir", tmp_path)
    done = await run(sweep, "submit", plan, *flags)
    assert (done.exit_code, "no RPC server is configured" in done.stderr) == (1, True)
    done = await run(sweep, "submit", plan, *flags, "--rpc", "http://127.0.0.1:9/KEY")
    assert (done.exit_code, "KEY" in done.output) == (1, False)


@pytest.mark.live
@pytest.mark.usefixtures("words")
async def test_deposits_reach_the_treasury_once(tmp_path, chain_clock, monkeypatch):
    monkeypatch.setattr(SystemClock, "time", lambda self: START + 100.0)  # as on the chain
    with started() as url:
        chain = Anvil(url)
        chain.set_up()
        async with desk(tmp_path, [ChainNode(url, timeout_s=15)], clock=chain_clock) as d:
            quotes = [await d.quote() for _ in range(3)]
            for quote in quotes[:2]:
                await confirmed(d, chain, chain.pay(wallet(quote), 5), quote.memo)
            chain.pay(wallet(quotes[2]), 9)  # never confirmed
            chain.mine(3)
        settings = {"rpc_urls": json.dumps([url]), "xpub": XPUB}
        path, at = tmp_path / "plan.json", ("--data-dir", tmp_path)
        planned = await run(sweep, "plan", "--to", TREASURY, *at, **settings)
        path.write_text(planned.stdout, encoding="utf-8")
        signed = await run(sweep, "sign", path, *SIGNING, "--to", TREASURY)
        path.write_text(signed.stdout, encoding="utf-8")
        first = await run(sweep, "submit", path, "--key-env", "RELAY_KEY", "--json", *at, **settings)
        again = await run(sweep, "submit", path, "--key-env", "RELAY_KEY", *at, **settings)
        assert (planned.exit_code, signed.exit_code, first.exit_code, again.exit_code) == (0, 0, 0, 0), first.output
        assert [row["outcome"] for row in json.loads(first.stdout)] == ["sent", "sent"]
        assert [line.split("  ")[2] for line in again.stdout.splitlines()] == ["used before"] * 2
        assert chain.balance(bytes.fromhex(TREASURY[2:])) == 10_000_000
        assert read_swept(tmp_path / FILE) == {wallet(quote): 5_000_000 for quote in quotes[:2]}
        chain.close()
