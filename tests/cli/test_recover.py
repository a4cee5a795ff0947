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
from tests.money.ledger.ledgers import opened
from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import KEY, TX, TX2, Server, address_of, desk, paid
from tests.money.purchases.wallet import XPUB, private_key
from tests.money.x402.parts import PAY_TO
from tests.postgres import POSTGRES, url_of
from toolserver.cli.books import books as books_command
from toolserver.cli.purchases import purchases
from toolserver.cli.receipts import receipts
from toolserver.cli.recover import recover
from toolserver.clock import SystemClock
from toolserver.money.books.sql_books import read_signed_payment_books
from toolserver.money.ledger.admin import backup, check, restore_backup
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import AUTHORIZATION_USED
from toolserver.money.purchases.quotes import Quotes, QuoteTerms
from toolserver.money.receipts.log import LogForked, UnchargedCall
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.money.x402.records import ChainTopup, TopupCredit, begin_recovered
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.sql.high_water import HighWater

BUYER, OTHER = Account.from_key(private_key(0, 0)), Account.from_key(private_key(1, 0))
BASE = "https://data.example"
OWNERS = (f"{number:064x}" for number in itertools.count())  # so that each call is a leaf of its own


def log_of(d, folder):
    stored = SqlReceiptStore(d.ledger.file)
    return ReceiptService(stored, folder, clock=d.clock, issuer=Issuer(BASE, "data.example")).log


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
        assert (early.exit_code, "not yet final" in early.stderr) == (1, True)
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
        assert (wrong.exit_code, "this is not a signature of the text" in wrong.stderr) == (1, True)
        done = json.loads((await do(recover, folder, fake.url, f"0x{TX2.hex()}", "--signature", signed[1])).stdout)
        again = await do(recover, folder, fake.url, f"0x{TX2.hex()}", "--signature", signed[1])
        assert (again.exit_code, "was credited before" in again.stderr) == (1, True)
        known = await do(recover, folder, fake.url, f"0x{TX.hex()}")
        assert (known.exit_code, "is not lost" in known.stderr) == (1, True)
    async with open_ledger(folder / FILE) as ledger:
        assert await ledger.balance(done["token"]) == 250
    assert (await check(folder / "ledger.sqlite3"))["ok"]


# --- top-ups by x402 ---

TX3, TX4, TX5, TX6 = (bytes([number]) * 32 for number in (13, 14, 15, 16))
MINE, THEIRS = (bytes.fromhex(account.address[2:]) for account in (BUYER, OTHER))


class Settlements:
    """Signed payments on a chain: each transfer follows upon the mark of its authorisation."""

    def __init__(self, fake):
        self.fake, self.signed = fake, {}
        fake.wrong = self.mark

    def add(self, tx, usd, nonce, payer=MINE):
        self.signed[f"0x{tx.hex()}"] = (payer, nonce)
        self.fake.pay(PAY_TO, usd, tx, payer=payer)

    def mark(self, call, said):
        if call["method"] == "eth_getTransactionReceipt" and (used := self.signed.get(call["params"][0])):
            (transfer,) = said["result"]["logs"]
            said["result"]["logs"] = pair(transfer, *used, 100)
            if call["params"][0] == f"0x{TX6.hex()}":  # settled together with one of another account
                said["result"]["logs"] += pair(transfer, THEIRS, NONCES[2], 200)
        return said


def pair(transfer, payer, nonce, at):
    """The mark of an authorisation, and the transfer that it allows."""
    who = f"0x{payer.hex():0>64}"
    mark = {"topics": [f"0x{AUTHORIZATION_USED.hex()}", who, f"0x{nonce.hex()}"], "data": "0x", "logIndex": hex(at)}
    moved = {"topics": [transfer["topics"][0], who, transfer["topics"][2]], "logIndex": hex(at + 1)}
    return [transfer | mark, transfer | moved]


def sign(account, text):
    return "0x" + bytes(account.sign_message(encode_defunct(text=text)).signature).hex()


async def recover_topup(folder, url, tx, place, *words):
    env = {"TOOLSERVER_BASE_URL": BASE, "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([url])} | place
    env["TOOLSERVER_X402__PAY_TO"] = f"0x{PAY_TO.hex()}"
    words = [f"0x{tx.hex()}", *words, "--data-dir", str(folder), "--json"]
    return await anyio.to_thread.run_sync(partial(CliRunner().invoke, recover, words, env=env))


@pytest.fixture(params=["sqlite", POSTGRES])
async def topped_up(request, tmp_path):
    """A ledger that knows the first of two top-ups, where it is, and a chain that has both and more."""
    place = {"TOOLSERVER_DATABASE_URL": url_of(tmp_path)} if request.param == "postgres" else {}
    known = begin_recovered(ChainTopup(MINE, NONCES[0], 2 * ATOMIC), 1)._replace(payload=bytes(32))
    async with opened(request.param, tmp_path, SystemClock()) as ledger:
        store = SqlPaymentStore(ledger.file)
        await store.begin_payment(known)
        await store.credit_topup(TopupCredit(known.payload, TX, "ab" * 32, 100, None, None, 1))
    async with fake_rpc() as fake:
        chain = Settlements(fake)
        chain.add(TX, 2, NONCES[0])
        chain.add(TX2, 5, NONCES[1])
        chain.add(TX3, 0.04, NONCES[2])
        chain.add(TX4, 5, NONCES[0], THEIRS)
        chain.add(TX6, 3, NONCES[2])
        fake.pay(PAY_TO, 5, TX5, payer=MINE)
        fake.now += 2000
        yield tmp_path, fake.url, place


NONCES = [bytes([number]) * 32 for number in (21, 22, 23)]


async def test_a_lost_top_up_is_credited_once_to_the_account_that_signed_it(topped_up):
    folder, url, place = topped_up
    asked = json.loads((await recover_topup(folder, url, TX2, place)).stdout)
    assert (asked["payment"], asked["credits"], asked["payers"]) == ("x402 top-up", 250, BUYER.address)
    wrong = await recover_topup(folder, url, TX2, place, "--signature", sign(OTHER, asked["text"]))
    assert (wrong.exit_code, "this is not a signature of the text" in wrong.stderr) == (1, True)

    proof = sign(BUYER, asked["text"])
    done = json.loads((await recover_topup(folder, url, TX2, place, "--signature", proof)).stdout)
    again = await recover_topup(folder, url, TX2, place, "--signature", proof)

    assert (done["amount_usd"], done["credits"]) == ("5.000000", 250)
    assert (again.exit_code, "is not lost" in again.stderr) == (1, True)
    kind = "postgres" if place else "sqlite"
    async with opened(kind, folder, SystemClock()) as ledger:
        assert (await ledger.balance(done["token"]), await ledger.check()) == (250, [])
        books = await ledger.file.read(lambda db: read_signed_payment_books(db, 0, 2**60))
        assert (books.topups, books.topup_amount, books.topup_credits) == (2, 7 * ATOMIC, 350)
    if not place:
        compared = await run(books_command, "check", "--no-chain", "--data-dir", folder)
        assert compared.exit_code == 0, compared.output


@pytest.mark.parametrize(
    ("tx", "why"),
    [(TX, "is not lost"), (TX3, "payments for single calls do not count"), (TX5, "no top-up by x402")],
    ids=["it is in the ledger", "it paid for a call", "nobody authorised it"],
)
async def test_what_is_no_lost_top_up_is_not_credited(topped_up, tx, why):
    refused = await recover_topup(*topped_up[:2], tx, topped_up[2])
    assert (refused.exit_code, why in refused.stderr) == (1, True), refused.output


async def test_the_same_nonce_of_another_account_is_another_top_up(topped_up):
    folder, url, place = topped_up
    asked = json.loads((await recover_topup(folder, url, TX4, place)).stdout)
    assert (asked["credits"], asked["payers"]) == (250, OTHER.address)


async def test_of_payments_that_were_settled_together_each_payer_gets_its_own(topped_up):
    folder, url, place = topped_up
    asked = json.loads((await recover_topup(folder, url, TX6, place)).stdout)
    assert (asked["amount_usd"], set(asked["payers"].split(", "))) == ("6.000000", {BUYER.address, OTHER.address})
    for account in (BUYER, OTHER):
        proof = sign(account, asked["text"])
        done = json.loads((await recover_topup(folder, url, TX6, place, "--signature", proof)).stdout)
        assert (done["amount_usd"], done["credits"]) == ("3.000000", 150)
    again = await recover_topup(folder, url, TX6, place, "--signature", proof)
    assert (again.exit_code, "is not lost" in again.stderr) == (1, True)


async def test_where_purchases_are_paid_to_the_same_address_nothing_is_guessed(topped_up):
    folder, url, place = topped_up
    place = place | {"TOOLSERVER_PAYMENTS__SHARED_WALLET": f"0x{PAY_TO.hex()}"}
    refused = await recover_topup(folder, url, TX2, place)
    assert (refused.exit_code, "payments for top-ups cannot be told apart there" in refused.stderr) == (1, True)


# --- the log of uncharged calls ---


async def test_the_log_signs_no_smaller_tree_until_another_one_is_begun(restored):
    folder, _ = restored
    async with desk(folder, [Server()]) as d:
        log = log_of(d, folder)
        with pytest.raises(LogForked, match="has 2 leaves and had 5"):
            await log.checkpoint()
        before = log.origin
    done = await run(receipts, "begin-log", "--yes", "--data-dir", folder)
    assert (done.exit_code, done.stdout) == (0, "log 2 begins with 2 leaves; the previous log ended with 5\n")
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
    assert (refused.exit_code, "no new log is needed" in refused.stderr) == (1, True)
