"""`toolserver refund`: from the buyer's wish to the money on the chain, and everybody who must not get it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import anyio.to_thread
import pytest
from click.testing import CliRunner
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.cli.test_ledger import run
from tests.cli.test_purchases import Sold, sold
from tests.money.ledger.ledgers import token
from tests.money.purchases.anvil import ALICE, START, Anvil, started
from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import TX
from tests.money.purchases.wallet import private_key
from toolserver.cli.books import books
from toolserver.cli.refund import refund
from toolserver.cli.sweep import sweep
from toolserver.clock import SystemClock
from toolserver.core.caller import token_hash
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address

BUYER, OTHER = Account.from_key(private_key(0, 0)), Account.from_key(private_key(1, 0))
TREASURY = Account.from_key("0x" + "44" * 32)
ELSEWHERE = checksum_address(bytes([0x55]) * 20)


def signature(text: str, account=BUYER) -> str:
    return "0x" + bytes(account.sign_message(encode_defunct(text=text)).signature).hex()


class Buyer:
    """A purchase of 375 credits that BUYER paid, and the verbs on it."""

    def __init__(self, folder, found: Sold, url: str) -> None:
        self.folder, self.token, self.url = folder, found.secrets[0], url
        self.fingerprint = token_hash(self.token).hex()[:16]

    async def do(self, *words, command=refund, given: str | None = None):
        """A verb in a thread: it has an event loop of its own."""
        env = {"TOOLSERVER_BASE_URL": "https://data.example", "TOOLSERVER_PAYMENTS__RPC_URLS": json.dumps([self.url])}
        words = (*words, "--data-dir", self.folder)
        invoke = partial(CliRunner().invoke, command, [str(word) for word in words], env=env, input=given)
        return await anyio.to_thread.run_sync(invoke)

    async def ask(self, credits=100, to=ELSEWHERE):
        done = await self.do("ask", self.fingerprint, credits, "--to", to, "--reason", "moved away", "--json")
        return done, json.loads(done.stdout) if done.exit_code == 0 else {}

    async def book(self, asked, account=BUYER, *more, text=None):
        words = ("book", asked["id"], "--signature", signature(text or asked["text"], account))
        return await self.do(*words, "--from", TREASURY.address, "--json", *more)

    async def balance(self):
        async with open_ledger(self.folder / FILE) as ledger:
            return await ledger.balance(self.token)


async def final(folder, tx=TX):
    async with open_ledger(folder / FILE) as ledger:
        await ledger.file.alone(
            lambda db: db.execute("UPDATE tx_credit SET final_at=1 WHERE tx_hash=?", (tx,)) and None
        )


@asynccontextmanager
async def bought(folder):
    """A buyer, on a chain that shows the payment."""
    async with fake_rpc() as fake:
        found = await sold(folder)
        fake.pay(bytes.fromhex(found.wallets[0][2:]), 7.5, TX, payer=bytes.fromhex(BUYER.address[2:]))
        fake.now += 2000
        await final(folder)
        yield Buyer(folder, found, fake.url)


async def test_the_payer_has_credits_paid_back_where_it_wants_them(tmp_path):
    async with bought(tmp_path) as buyer:
        _, asked = await buyer.ask()
        assert (asked["state"], asked["amount_usd"], asked["to"]) == ("asked", "2.000000", ELSEWHERE)
        assert await buyer.balance() == 375
        booked = json.loads((await buyer.book(asked)).stdout)
        assert (booked["state"], booked["proof"], booked["from"]) == ("booked", "payer", TREASURY.address)
        assert await buyer.balance() == 275
        again = await buyer.book(asked)
        assert (again.exit_code, "is booked" in again.stderr) == (1, True)
        assert await buyer.balance() == 275
        async with open_ledger(tmp_path / FILE) as ledger:
            page = await ledger.statement(buyer.token, StatementQuery())
            assert (page.entries[0].kind, page.entries[0].credits) == ("refund", -100)
            assert await ledger.check() == []
        (listed,) = json.loads((await buyer.do("list", "--open", "--json")).stdout)
        assert (listed["id"], listed["state"]) == (asked["id"], "booked")
        said = json.loads((await run(books, "day", "--json", "--data-dir", tmp_path)).stdout)
        assert said["credits"]["refunded"] == 100
        assert said["usdc"]["to_pay_back"] == {"payments": 1, "usd": "2.000000"}
        assert said["problems"] == []


async def test_a_signature_of_somebody_else_or_of_another_text_takes_nothing(tmp_path):
    async with bought(tmp_path) as buyer:
        _, asked = await buyer.ask()
        _, other = await buyer.ask(to=OTHER.address)
        for refused in (
            await buyer.book(asked, OTHER),
            await buyer.book(other, OTHER),  # the address that gets it, and no token
            await buyer.book(asked, BUYER, text=other["text"]),
            await buyer.book(asked, BUYER, text=asked["text"].replace("refund 100", "refund 200")),
        ):
            assert (refused.exit_code, "this is not a signature of the text" in refused.stderr) == (1, True)
        assert await buyer.balance() == 375


async def test_who_paid_from_an_exchange_shows_the_token_and_proves_the_address(tmp_path):
    async with bought(tmp_path) as buyer:
        _, asked = await buyer.ask(to=OTHER.address)
        stranger = token(7)
        async with open_ledger(tmp_path / FILE) as ledger:
            await ledger.mint(stranger, 500, cause="grant:stranger")
        for other in ("svc_live_" + "1" * 64, stranger):
            refused = await buyer.do(
                "book", asked["id"], "--signature", signature(asked["text"], OTHER), "--from", TREASURY.address,
                "--token", given=other,
            )  # fmt: skip
            assert refused.exit_code == 1
        assert "this is not the token being refunded" in refused.stderr
        assert await buyer.balance() == 375
        done = await buyer.do(
            "book", asked["id"], "--signature", signature(asked["text"], OTHER), "--from", TREASURY.address, "--token",
            "--json", given=buyer.token,
        )  # fmt: skip
        assert json.loads(done.stdout)["proof"] == "token"
        assert buyer.token not in done.output


async def test_no_more_is_refunded_than_was_paid_for_is_final_and_is_left(tmp_path):
    async with bought(tmp_path) as buyer:
        async with open_ledger(tmp_path / FILE) as ledger:
            await ledger.mint(buyer.token, 50, cause="grant:x:thanks")
            await ledger.charge("c1", buyer.token, 20, endpoint="/x")
        refused, _ = await buyer.ask(406)
        assert "holds only 405 credits" in refused.stderr
        refused, _ = await buyer.ask(376)
        assert "375 credits were paid for" in refused.stderr
        _, first = await buyer.ask(375)
        _, second = await buyer.ask(1)
        assert (await buyer.book(first)).exit_code == 0
        done = await buyer.book(second)
        assert (done.exit_code, "0 credits were paid for" in done.stderr) == (1, True)
        assert await buyer.balance() == 30
        async with open_ledger(tmp_path / FILE) as ledger:
            await ledger.file.alone(lambda db: db.execute("UPDATE tx_credit SET final_at=NULL") and None)
        refused, _ = await buyer.ask(1)
        assert "final on the chain" in refused.stderr


async def test_a_refund_is_cancelled_until_it_was_written_out_to_sign(tmp_path):
    async with bought(tmp_path) as buyer:
        _, first = await buyer.ask()
        assert json.loads((await buyer.do("cancel", first["id"], "--json")).stdout)["state"] == "cancelled"
        _, second = await buyer.ask()
        await buyer.book(second)
        assert await buyer.balance() == 275
        await buyer.do("cancel", second["id"])
        assert await buyer.balance() == 375
        _, third = await buyer.ask(375)
        await buyer.book(third)
        assert (await buyer.do("plan")).exit_code == 0
        done = await buyer.do("cancel", third["id"])
        assert (done.exit_code, "may be signed already" in done.stderr) == (1, True)
        said = json.loads((await run(books, "day", "--json", "--data-dir", tmp_path)).stdout)
        assert (said["credits"]["refunded"], said["problems"]) == (475, [])


async def test_a_proof_that_comes_too_late_is_refused(tmp_path, monkeypatch):
    async with bought(tmp_path) as buyer:
        _, asked = await buyer.ask()
        later = SystemClock().time() + 8 * 86_400
        monkeypatch.setattr(SystemClock, "time", lambda self: later)
        done = await buyer.book(asked)
        assert (done.exit_code, "ask again" in done.stderr) == (1, True)


class Payable(NamedTuple):
    """A refund that was asked for and booked, and the chain on which it is to be paid."""

    buyer: Buyer
    asked: dict[str, Any]
    chain: Anvil


@asynccontextmanager
async def payable_refund(tmp_path, monkeypatch) -> AsyncIterator[Payable]:
    """A refund on a chain of its own, whose treasury has 50 USDC. The keys to sign and to send are in variables."""
    monkeypatch.setattr(SystemClock, "time", lambda self: START + 100.0)  # as on the chain
    monkeypatch.setenv("TREASURY_KEY", "44" * 32)
    monkeypatch.setenv("RELAY_KEY", private_key(3, 0).hex())
    with started() as url:
        chain = Anvil(url)
        chain.set_up()
        chain.pay(bytes.fromhex(TREASURY.address[2:]), 50, ALICE)
        chain.mine(3)
        async with bought(tmp_path) as buyer:
            _, asked = await buyer.ask()
            await buyer.book(asked)
            buyer.url = url
            yield Payable(buyer, asked, chain)
        chain.close()


@pytest.mark.live
async def test_a_refund_is_paid_once_whatever_is_signed_and_submitted(tmp_path, monkeypatch):
    async with payable_refund(tmp_path, monkeypatch) as (buyer, asked, chain):
        path, signed = tmp_path / "plan.json", []
        for _ in range(2):
            path.write_text((await buyer.do("plan")).stdout, encoding="utf-8")
            done = await run(sweep, "sign", path, "--key-env", "TREASURY_KEY", "--to", ELSEWHERE)
            assert done.exit_code == 0, done.output
            signed.append(done.stdout)
        outcomes = []
        for text in (*signed, signed[0]):
            path.write_text(text, encoding="utf-8")
            done = await buyer.do("submit", path, "--key-env", "RELAY_KEY", "--json")
            assert done.exit_code == 0, done.output
            outcomes.append(json.loads(done.stdout)[0])
        assert [row["state"] for row in outcomes] == ["paid"] * 3
        assert chain.balance(bytes([0x55]) * 20) == 2_000_000
        chain.mine(3)
        async with open_ledger(tmp_path / FILE) as ledger:  # a crash after sending, before the end was noted
            await ledger.file.alone(_forget_the_end)
        assert json.loads((await buyer.do("list", "--open", "--json")).stdout)[0]["state"] == "sent"
        wrong = await buyer.do("paid", asked["id"], "--tx", "0x" + "12" * 32)
        assert wrong.exit_code == 1
        done = await buyer.do("paid", asked["id"], "--tx", outcomes[0]["tx"], "--json")
        assert json.loads(done.stdout)["state"] == "paid", done.output
        path.write_text(signed[0].replace('"value": 2000000', '"value": 3000000'), encoding="utf-8")
        forged = await buyer.do("submit", path, "--key-env", "RELAY_KEY")
        assert forged.exit_code == 1


@pytest.mark.live
async def test_a_refund_that_is_submitted_again_before_it_is_in_a_block_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("toolserver.money.purchases.chain.relay.WAIT_S", 1.0)
    async with payable_refund(tmp_path, monkeypatch) as (buyer, _, chain):
        path = tmp_path / "plan.json"
        for words in (("plan",), ("sign", path, "--key-env", "TREASURY_KEY", "--to", ELSEWHERE)):
            done = await (buyer.do(*words) if words == ("plan",) else run(sweep, *words))
            path.write_text(done.stdout, encoding="utf-8")
        chain.rpc("evm_setAutomine", False)
        submit = ("submit", path, "--key-env", "RELAY_KEY", "--json")
        rows = [json.loads((await buyer.do(*submit)).stdout)[0] for _ in range(2)]
        assert [(row["state"], row["outcome"]) for row in rows] == [("sent", "not seen yet")] * 2
        assert rows[0]["tx"] == rows[1]["tx"]
        assert chain.rpc("txpool_status")["pending"] == "0x1"
        chain.mine(1)
        paid = json.loads((await buyer.do(*submit)).stdout)[0]
        assert (paid["state"], paid["tx"]) == ("paid", rows[0]["tx"])
        assert chain.balance(bytes([0x55]) * 20) == 2_000_000


def _forget_the_end(db):
    db.execute("DROP TRIGGER refund_keeps_its_terms")
    db.execute("UPDATE refund SET state='sent', ended_at=NULL")
