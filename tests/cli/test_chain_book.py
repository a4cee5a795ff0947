"""`toolserver books chain`: the book of the chain by state, held against the balances that a node reports."""

import csv
import io
import json
import random
from functools import partial

import anyio.to_thread
import pytest
from click.testing import CliRunner

from tests.money.chain.log_node import LogNode, served
from tests.money.chain.month import START, Month, scanner_of
from tests.money.chain.parts import WALLET
from tests.money.purchases.parts import Server, desk
from toolserver.cli.books import books
from toolserver.money.chain.scanner import COLD_S


async def run(folder, url, *words):
    named = {
        "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([url] if url else []),
        "TOOLSERVER_X402__PAY_TO": f"0x{WALLET.hex()}",
    }
    command, *more = words if words[:1] == ("check",) else ("chain", *words)
    arguments = [command, "--json", "--data-dir", str(folder), *more]
    done = await anyio.to_thread.run_sync(partial(CliRunner().invoke, books, arguments, env=named))
    return done, json.loads(done.stdout) if done.stdout.startswith("{") else None


@pytest.fixture
async def month(tmp_path):
    """A chain with a payment that was confirmed, one twice, a short one and dust, all final and read."""
    server, node = Server(), LogNode()
    node.height = START
    async with served(node) as url:
        async with desk(tmp_path, [server]) as d:
            scanner, pool = scanner_of(d, url)
            m = Month(node, d, server, scanner, random.Random(0))
            address = await m.quote()
            tx = m.pay(address, 5)
            m.pass_blocks(12)
            await m.confirm(address, tx, 5)
            m.pay(address, 7)
            m.pay(await m.quote(), 0.5)
            m.pay(address, 0.001)
            m.pass_blocks(int(COLD_S / 2))
            await scanner.look()
            await pool.aclose()
        yield tmp_path, url, node, m


async def test_states_add_up_to_the_balances_of_all_addresses(month):
    folder, url, _, _ = month
    done, found = await run(folder, url)
    assert done.exit_code == 0, done.output
    assert {state: (sums["transfers"], sums["received_usd"]) for state, sums in found["states"].items()} == {
        "credited": (1, "5.000000"),
        "second": (1, "7.000000"),
        "short": (1, "0.500000"),
    }
    assert found["dust"] == {"transfers": 1, "received_usd": "0.001000", "sent_usd": "0.000000", "of_nothing": 0}
    assert (found["booked_usd"], found["held_usd"], found["addresses"]) == ("12.501000", "12.501000", 3)
    assert (found["agrees"], found["differences"]) == (True, 0)


async def test_an_address_that_holds_something_else_is_named_with_both_sums(month):
    folder, url, node, m = month
    address = next(iter(m.wallets))
    node.incoming[address][0] = node.incoming[address][0]._replace(amount=4_000_000)
    done, found = await run(folder, url)
    assert (done.exit_code, found["agrees"], found["differences"]) == (1, False, 1)
    (differing,) = found["differing"]
    assert differing["address"].lower() == address
    assert (differing["booked_usd"], differing["held_usd"]) == ("12.001000", "11.001000")


async def test_the_check_of_everything_compares_documents_transfers_and_balances(month):
    folder, url, node, m = month
    done, found = await run(folder, url, "check")
    checks = {one["name"]: one for one in found["checks"]}
    assert (checks["chain_book"]["compared"], checks["chain_book"]["differences"]) == (3, [])
    assert (checks["balances"]["compared"], checks["balances"]["differences"]) == (3, [])
    address = next(iter(m.wallets))
    node.incoming[address][0] = node.incoming[address][0]._replace(amount=4_000_000)
    done, found = await run(folder, url, "check")
    (difference,) = {one["name"]: one for one in found["checks"]}["balances"]["differences"]
    assert difference.lower().startswith(f"{address}: booked are 12.001000 usdc, held 11.001000")
    assert done.exit_code == 1


async def test_a_late_payment_to_an_address_that_is_read_once_a_day_is_read_at_once_and_not_named(tmp_path):
    server, node = Server(), LogNode()
    node.height = START
    async with served(node) as url, desk(tmp_path, [server]) as d:
        scanner, pool = scanner_of(d, url)
        m = Month(node, d, server, scanner, random.Random(0))
        address = await m.quote()
        for _ in range(3):
            m.pass_blocks(int(COLD_S / 2))
            await scanner.look()
        tx, dust = m.pay(address, 5), m.pay(address, 0.001)
        m.pass_blocks(2000)
        await scanner.look()
        assert not {tx, dust} & set(await m.read_states()), "it was not looked at since"
        for _ in range(2):
            done, found = await run(tmp_path, url)
            assert (done.exit_code, found["agrees"], found["differing"]) == (0, True, []), done.output
            assert found["states"]["late"]["received_usd"] == "5.000000"
            assert found["dust"]["received_usd"] == "0.001000"
        done, found = await run(tmp_path, url, "check")
        assert {one["name"]: one["differences"] for one in found["checks"]}["balances"] == []
        assert (await m.read_states())[tx] == {"late": 1}
        await pool.aclose()


async def test_the_transfers_are_exported_by_way_and_state_with_what_became_of_them(month):
    folder, _, _, m = month
    words = ["export", "--chain", "--data-dir", str(folder), "--month", m.desk.clock.now().strftime("%Y-%m")]
    done = await anyio.to_thread.run_sync(CliRunner().invoke, books, words)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["way"], row["state"], row["received_usd"], row["sent_usd"]) for row in rows] == [
        ("transfer", "credited", "5.000000", "0.000000"),
        ("transfer", "second", "7.000000", "0.000000"),
        ("transfer", "short", "0.500000", "0.000000"),
    ]
    for row in rows:
        assert row["history"].rpartition("; ")[2] == f"{row['state']} {row['state_since']}"
        assert (row["transaction"][:2], len(row["transaction"]), row["payee"][:2]) == ("0x", 66, "0x")


async def test_without_a_server_the_last_comparison_of_the_service_is_shown_and_why(month):
    folder, _, _, _ = month
    done, found = await run(folder, None)
    assert (done.exit_code, found["agrees"]) == (0, True)
    assert "no RPC server is configured" in found["balances"]
    assert found["compared_at"].startswith("2027-")
    done, found = await run(folder, "http://127.0.0.1:9/", "--no-balances")
    assert (done.exit_code, found["balances"]) == (0, "not compared")


async def test_a_chain_that_was_never_read_is_an_error_in_a_sentence(tmp_path):
    async with desk(tmp_path, [Server()]):
        pass
    done, _ = await run(tmp_path, None)
    assert done.exit_code == 1
    assert "the chain was not read yet" in done.stderr
