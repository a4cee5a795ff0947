"""The drill: a backup of yesterday is restored, and what must not happen does not, and what must be found is found."""

import itertools
import json
from decimal import Decimal
from functools import partial

import anyio.to_thread
import pytest
from click.testing import CliRunner
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.cli.test_books import run
from tests.purchases.fake_rpc import fake_rpc
from tests.purchases.parts import KEY, TX, TX2, Server, address_of, desk, paid
from tests.purchases.wallet import XPUB, private_key
from toolserver.cli.purchases import purchases
from toolserver.cli.receipts import receipts
from toolserver.cli.recover import recover
from toolserver.ledger.admin import backup, check, restore_backup
from toolserver.ledger.sqlite import FILE, open_ledger
from toolserver.purchases.quotes import Quotes, QuoteTerms
from toolserver.receipts.log_buckets import UnchargedCall
from toolserver.receipts.log_state import LogForked
from toolserver.receipts.service import ReceiptService
from toolserver.receipts.sqlite import SqliteReceiptStore
from toolserver.storage.high_water import HighWater

BUYER, OTHER = Account.from_key(private_key(0, 0)), Account.from_key(private_key(1, 0))
BASE = "https://data.example"
OWNERS = (f"{number:064x}" for number in itertools.count())  # so that each call is a leaf of its own


def log_of(d, folder):
    stored = SqliteReceiptStore(d.ledger.file)
    return ReceiptService(stored, folder, clock=d.clock, base_url=BASE, service="data.example").log


def quotes_of(d, folder):
    return Quotes(d.store, d.clock, QuoteTerms(KEY.address), None, HighWater(folder))


async def trade(folder, tx, leaves):
    """A day: one purchase that is credited, one quote that is not, and calls that cost nothing. Returns both quotes."""
    server = Server()
    async with desk(folder, [server]) as d:
        shop, log = quotes_of(d, folder), log_of(d, folder)
        bought, waiting = await shop.make(Decimal(5), None), await shop.make(Decimal(7), None)
        server.sees(paid(address_of(bought), 5, tx=tx))
        await d.confirm(tx, bought.memo)
        for _ in range(leaves):
            await log.record(UnchargedCall(d.clock.time(), next(OWNERS), "stale_data", "/api/pro/x", 2))
        d.clock.advance(leaves * 3600 + 60)
        await log.close_hours()
        return bought, waiting


@pytest.fixture
async def restored(tmp_path):
    """A data directory whose ledger is that of yesterday, and the quotes of both days."""
    first = await trade(tmp_path, TX, leaves=2)
    await anyio.to_thread.run_sync(backup, tmp_path, tmp_path / "yesterday.sqlite3")
    second = await trade(tmp_path, TX2, leaves=3)
    await anyio.to_thread.run_sync(restore_backup, tmp_path, tmp_path / "yesterday.sqlite3")
    return tmp_path, [*first, *second]


async def do(command, folder, url, *words):
    env = {"TOOLSERVER_BASE_URL": BASE, "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([url])}
    env["TOOLSERVER_PAYMENTS__XPUB"] = XPUB
    invoke = partial(CliRunner().invoke, command, [*words, "--data-dir", str(folder), "--json"], env=env)
    return await anyio.to_thread.run_sync(invoke)


async def test_no_address_is_given_out_twice(restored):
    folder, quotes = restored
    async with desk(folder, [Server()]) as d:
        shop = quotes_of(d, folder)
        later = [await shop.make(Decimal(5), None) for _ in range(100)]
    wallets = [quote.wallet for quote in (*quotes, *later)]
    assert len(set(wallets)) == len(wallets) == 104


async def test_the_buyer_of_the_lost_day_is_found_and_gets_the_credits_by_its_own_proof(restored):
    folder, quotes = restored
    payer = bytes.fromhex(BUYER.address[2:])
    async with fake_rpc() as fake:
        fake.pay(address_of(quotes[2]), 5, TX2, payer=payer)
        fake.pay(address_of(quotes[0]), 5, TX)
        early = await do(recover, folder, fake.url, f"0x{TX2.hex()}")
        assert (early.exit_code, "not final yet" in early.stderr) == (1, True)
        fake.now += 2000
        unclaimed = json.loads((await do(purchases, folder, fake.url, "--unclaimed")).stdout)
        assert [(row["wallet"], row["purchase"]) for row in unclaimed] == [(quotes[2].wallet, "lost")]
        asked = json.loads((await do(recover, folder, fake.url, f"0x{TX2.hex()}")).stdout)
        assert (asked["credits"], asked["payers"]) == (250, BUYER.address)
        signed = [
            "0x" + bytes(account.sign_message(encode_defunct(text=asked["text"])).signature).hex()
            for account in (OTHER, BUYER)
        ]
        wrong = await do(recover, folder, fake.url, f"0x{TX2.hex()}", "--signature", signed[0])
        assert (wrong.exit_code, "this is no signature of the text" in wrong.stderr) == (1, True)
        done = json.loads((await do(recover, folder, fake.url, f"0x{TX2.hex()}", "--signature", signed[1])).stdout)
        again = await do(recover, folder, fake.url, f"0x{TX2.hex()}", "--signature", signed[1])
        assert (again.exit_code, "was credited before" in again.stderr) == (1, True)
        known = await do(recover, folder, fake.url, f"0x{TX.hex()}")
        assert (known.exit_code, "is not lost" in known.stderr) == (1, True)
    async with open_ledger(folder / FILE) as ledger:
        assert await ledger.balance(done["token"]) == 250
    assert (await check(folder / "ledger.sqlite3"))["ok"]


async def test_the_log_signs_no_smaller_tree_until_another_one_is_begun(restored):
    folder, _ = restored
    async with desk(folder, [Server()]) as d:
        log = log_of(d, folder)
        with pytest.raises(LogForked, match="has 2 leaves and had 5"):
            await log.checkpoint()
        before = log.origin
    done = await run(receipts, "begin-log", "--yes", "--data-dir", folder)
    assert (done.exit_code, done.stdout) == (0, "log 2 begins with 2 leaves; the one before ended with 5\n")
    async with desk(folder, [Server()]) as d:
        log = log_of(d, folder)
        signed = await log.checkpoint()
        assert (log.origin, signed.size) == (f"{before}/2", 2)
        assert signed.note.startswith(f"{before}/2\n2\n")
        for _ in range(4):
            await log.record(UnchargedCall(d.clock.time(), next(OWNERS), "stale_data", "/api/pro/x", 2))
        d.clock.advance(5 * 3600)
        await log.close_hours()
        assert (await log.checkpoint()).size == 6
    assert HighWater(folder).read("log")["part"] == 2
    refused = await run(receipts, "begin-log", "--yes", "--data-dir", folder)
    assert (refused.exit_code, "nothing to begin" in refused.stderr) == (1, True)
