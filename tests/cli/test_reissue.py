"""`toolserver reissue`: a lost token is replaced for its only payer, after 48 hours in which its holder may object."""

import json

import pytest

from tests.cli.test_refund import BUYER, OTHER, bought, signature
from tests.requirements import proves
from toolserver.cli.reissue import reissue
from toolserver.clock import SystemClock
from toolserver.core.caller import token_hash
from toolserver.errors import RevokedToken
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.closed_purchases import ClosedPurchases
from toolserver.money.purchases.sql_refunds import SqlReissues

CHILD = "svc_live_" + "c" * 64
HOURS = 3600


@pytest.fixture
def passing(monkeypatch):
    """A function that lets time pass."""
    begun, passed = SystemClock().time(), [0.0]
    monkeypatch.setattr(SystemClock, "time", lambda self: begun + passed[0])

    def pass_time(seconds):
        passed[0] += seconds

    return pass_time


async def do(buyer, *words):
    return await buyer.do(*words, command=reissue)


async def ask_and_prove(buyer, account=BUYER):
    asked = json.loads((await do(buyer, "ask", buyer.fingerprint, "--json")).stdout)
    return asked, await do(buyer, "prove", asked["id"], "--signature", signature(asked["text"], account), "--json")


def closed(ledger):
    return ClosedPurchases(ledger, lambda: SqlReissues(ledger.file, SystemClock()))


@proves("tokens.reissue")
async def test_the_payer_gets_a_new_token_after_48_hours_and_the_old_one_is_refused(tmp_path, passing):
    async with bought(tmp_path) as buyer:
        async with open_ledger(tmp_path / FILE) as ledger:
            await ledger.create_allowance(buyer.token, token_hash(CHILD).hex(), AllowanceTerms("robot", 50))
        asked, proved = await ask_and_prove(buyer)
        assert asked["payer"] == BUYER.address
        assert json.loads(proved.stdout)["state"] == "waiting"
        async with open_ledger(tmp_path / FILE) as ledger:
            due = (await closed(ledger).balance(buyer.token)).reissue_at
            assert due is not None
            assert abs(due.timestamp() - SystemClock().time() - 48 * HOURS) < 5
            assert (await closed(ledger).balance(CHILD)).reissue_at is None
        passing(47 * HOURS)
        early = await do(buyer, "complete", asked["id"])
        assert (early.exit_code, "may object until" in early.stderr) == (1, True)
        passing(2 * HOURS)
        done = json.loads((await do(buyer, "complete", asked["id"], "--json")).stdout)
        async with open_ledger(tmp_path / FILE) as ledger:
            assert (await closed(ledger).balance(done["token"])).credits == 375
            assert (await closed(ledger).balance(done["token"])).reissue_at is None
            with pytest.raises(RevokedToken):
                await closed(ledger).balance(buyer.token)
            assert (await ledger.charge("c1", CHILD, 2, endpoint="/x")).charged == 2
            assert [one.name for one in await ledger.list_allowances(done["token"])] == ["robot"]
            assert await ledger.check() == []
        again = await do(buyer, "complete", asked["id"])
        assert (again.exit_code, "is done" in again.stderr) == (1, True)
        (listed,) = json.loads((await do(buyer, "list", "--json")).stdout)
        assert (listed["state"], listed["token_fp"]) == ("done", token_hash(done["token"]).hex()[:16])


async def test_a_token_that_was_not_printed_is_printed_the_next_time(tmp_path, passing, monkeypatch):
    async with bought(tmp_path) as buyer:
        asked, _ = await ask_and_prove(buyer)
        passing(49 * HOURS)
        with monkeypatch.context() as broken:
            broken.setattr("toolserver.cli.reissue.print_facts", fail)
            assert (await do(buyer, "complete", asked["id"], "--json")).exit_code != 0
        done = json.loads((await do(buyer, "complete", asked["id"], "--json")).stdout)
        async with open_ledger(tmp_path / FILE) as ledger:
            assert (await closed(ledger).balance(done["token"])).credits == 375
        assert done["state"] == "done"
        again = await do(buyer, "complete", asked["id"])
        assert (again.exit_code, "is done" in again.stderr, "svc_live_" in again.output) == (1, True, False)
        assert list((tmp_path / "keys").glob("reissue*")) == []


def fail(*_):
    raise BrokenPipeError


@proves("tokens.reissue-objection")
async def test_the_holder_objects_and_keeps_the_token(tmp_path, passing):
    async with bought(tmp_path) as buyer:
        asked, _ = await ask_and_prove(buyer)
        twice, second = await ask_and_prove_again(buyer)
        assert (twice.exit_code, second) == (1, None)
        async with open_ledger(tmp_path / FILE) as ledger:
            assert await closed(ledger).cancel_reissue(buyer.token) is True
            assert await closed(ledger).cancel_reissue(buyer.token) is False
            assert (await closed(ledger).balance(buyer.token)).reissue_at is None
        passing(50 * HOURS)
        done = await do(buyer, "complete", asked["id"])
        assert (done.exit_code, "is cancelled" in done.stderr) == (1, True)


async def ask_and_prove_again(buyer):
    """A second one while the first waits: it is not even asked for."""
    return await do(buyer, "ask", buyer.fingerprint, "--json"), None


@proves("tokens.reissue")
async def test_another_signature_or_a_late_one_begins_nothing(tmp_path, passing):
    async with bought(tmp_path) as buyer:
        asked, refused = await ask_and_prove(buyer, OTHER)
        assert (refused.exit_code, "this is not a signature of the text" in refused.stderr) == (1, True)
        passing(25 * HOURS)
        words = ("prove", asked["id"], "--signature", signature(asked["text"]))
        late = await do(buyer, *words)
        assert (late.exit_code, "ask again" in late.stderr) == (1, True)
        assert json.loads((await do(buyer, "cancel", asked["id"], "--json")).stdout)["state"] == "cancelled"


@proves("tokens.reissue")
async def test_a_token_of_several_payers_or_of_none_is_not_replaced(tmp_path):
    async with bought(tmp_path) as buyer:
        async with open_ledger(tmp_path / FILE) as ledger:
            await ledger.mint(CHILD, 5, cause="grant:x:thanks")
            row = "x'{:064x}', x'{:040x}', x'{:064x}', 1000000, 'topup x', 'settled', x'{:064x}', 0, 0, 0, ?, 50"
            columns = "payload, authorizer, nonce, amount, request, state, tx_hash, valid_before, begun_at, settled_at"
            sql = f"INSERT INTO x402_payment({columns}, token, credits) VALUES ({row.format(1, 2, 3, 4)})"
            token = token_hash(buyer.token).hex()
            await ledger.file.alone(lambda db: db.execute(sql, (token,)) and None)
        several = await do(buyer, "ask", buyer.fingerprint)
        assert (several.exit_code, "several accounts paid" in several.stderr) == (1, True)
        nobody = await do(buyer, "ask", token_hash(CHILD).hex()[:16])
        assert (nobody.exit_code, "nobody paid" in nobody.stderr) == (1, True)
