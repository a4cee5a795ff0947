"""`toolserver purchases` and `toolserver sweep-plan`: what they print, what they never print, how they complain."""

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
import httpx
import pytest
from click.testing import CliRunner, Result

from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import TX, TX2, Server, address_of, desk, paid
from tests.money.purchases.wallet import XPUB, address
from tests.money.x402.parts import PAYER_TEXT, signed
from tests.money.x402.parts import desk as paying
from toolserver.cli.purchases import print_sweep_plan, purchases
from toolserver.clock import SystemClock
from toolserver.errors import AlreadyCredited, BelowMinimum, SettlementPending
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.x402.records import BegunPayment
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.settings import PREFIX
from toolserver.sql.high_water import HighWater

TREASURY = checksum_address(bytes([0x77]) * 20)


async def run(command: Any, *words: Any, **settings: Any) -> Result:
    """The command in a thread: it has an event loop of its own. Settings come from the environment."""
    env = {f"{PREFIX}PAYMENTS__{name.upper()}": value for name, value in settings.items()}
    invoke = partial(CliRunner().invoke, command, [str(word) for word in words], env=env)
    return await anyio.to_thread.run_sync(invoke)


class Sold(NamedTuple):
    """Three purchases: one credited, one paid too little for, one only quoted."""

    secrets: list[str]
    wallets: list[str]


async def sold(folder: Path) -> Sold:
    server = Server()
    async with desk(folder, [server]) as d:
        quotes = [await d.quote("5"), await d.quote("12.345678"), await d.quote("1")]
        server.sees(paid(address_of(quotes[0]), 7.5), paid(address_of(quotes[1]), 0.5, tx=TX2))
        token = (await d.confirm(TX, quotes[0].memo)).token
        with pytest.raises(BelowMinimum):
            await d.confirm(TX2, quotes[1].memo)
        with pytest.raises(AlreadyCredited):
            await d.confirm(bytes([9]) * 32, quotes[0].memo)
        return Sold([token, *(quote.memo for quote in quotes)], [quote.wallet for quote in quotes])


def secret_in(done: Result, found: Sold) -> bool:
    return any(secret[9:] in done.output for secret in found.secrets)


async def test_purchases_are_listed_newest_first(tmp_path):
    found = await sold(tmp_path)
    done = await run(purchases, "--data-dir", tmp_path, "--json")
    assert done.exit_code == 0
    newest, middle, oldest = json.loads(done.stdout)
    assert newest == {
        **{"id": 3, "state": "quoted", "amount_usd": "1.000000", "credits": 50, "address": found.wallets[2]},
        **{"created": "2027-01-15T08:00:00Z", "expires": "2027-01-15T08:30:00Z", "tx": None},
    }
    assert (middle["amount_usd"], middle["credits"], middle["state"]) == ("12.345678", 617, "quoted")
    assert (oldest["amount_usd"], oldest["credits"], oldest["state"]) == ("7.500000", 375, "credited")
    assert oldest["tx"] == f"0x{TX.hex()}"
    assert not secret_in(done, found)


async def test_as_text_each_purchase_is_a_line(tmp_path):
    found = await sold(tmp_path)
    done = await run(purchases, "--data-dir", tmp_path)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"3  quoted  1.000000  50  {found.wallets[2]}  2027-01-15T08:00:00Z")
    assert not secret_in(done, found)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["--state", "credited"], [1]),
        (["--state", "quoted"], [3, 2]),
        (["--state", "reorged"], []),
        (["--limit", "2"], [3, 2]),
        (["--state", "quoted", "--limit", "1"], [3]),
    ],
)
async def test_purchases_are_chosen_by_state_and_number(tmp_path, words, ids):
    await sold(tmp_path)
    done = await run(purchases, "--data-dir", tmp_path, "--json", *words)
    assert [row["id"] for row in json.loads(done.stdout)] == ids


async def test_what_needs_a_person_is_listed(tmp_path):
    found = await sold(tmp_path)
    done = await run(purchases, "--cases", "--data-dir", tmp_path, "--json")
    (case,) = json.loads(done.stdout)
    assert case == {
        **{"kind": "unapplied", "tx": f"0x{TX2.hex()}", "wallet": found.wallets[1], "amount_usd": "0.500000"},
        **{"reason": "below_minimum", "lost": None, "at": "2027-01-15T08:00:00Z", "on_chain": []},
    }
    text = await run(purchases, "--cases", "--data-dir", tmp_path)
    assert text.stdout.startswith(f"unapplied  0x{TX2.hex()}  {found.wallets[1]}  0.500000  below_minimum")


async def test_an_empty_ledger_says_so(tmp_path):
    async with desk(tmp_path, [Server()]):
        pass
    assert (await run(purchases, "--data-dir", tmp_path)).stdout == "no purchases\n"
    assert (await run(purchases, "--cases", "--data-dir", tmp_path)).stdout == "nothing needs attention\n"
    assert (await run(purchases, "--pending", "--data-dir", tmp_path)).stdout == "no payment is pending\n"
    assert (await run(purchases, "--data-dir", tmp_path, "--json")).stdout == "[]\n"


async def test_signed_payments_that_are_not_settled_are_listed_and_become_cases(tmp_path):
    async with paying(tmp_path) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.topup(signed(2_000_000))
    (row,) = json.loads((await run(purchases, "--pending", "--data-dir", tmp_path, "--json")).stdout)
    assert (row["payer"], row["amount_usd"], row["for"], row["tx"]) == (PAYER_TEXT, "2.000000", "a top-up", None)
    assert row["begun"] == "2027-01-15T08:00:00Z"
    async with open_ledger(tmp_path / "ledger.sqlite3", SystemClock()) as ledger:
        store = SqlPaymentStore(ledger.file)
        await store.begin_payment(BegunPayment(bytes(32), bytes(20), bytes(32), 40_000, "GET /api/pro/x h", 0, None, 0))
    rows = json.loads((await run(purchases, "--cases", "--data-dir", tmp_path, "--json")).stdout)
    assert ("unsettled", "GET /api/pro/x", "1970-01-01T00:00:00Z") in [(r["kind"], r["reason"], r["at"]) for r in rows]


async def test_purchases_are_listed_while_the_service_runs_and_nothing_is_changed(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        await d.quote()
        done = await run(purchases, "--data-dir", tmp_path, "--json")
        assert len(json.loads(done.stdout)) == 1
        await d.quote()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--state", "paid"], "not one of"),
        (["--limit", "0"], "not in the range"),
        (["--cases", "--state", "quoted"], "cannot be combined"),
        (["--cases", "--pending"], "cannot be combined"),
    ],
)
async def test_wrong_flags_are_explained(tmp_path, words, why):
    done = await run(purchases, "--data-dir", tmp_path, *words)
    assert (done.exit_code, why in done.stderr) == (2, True)


async def test_without_a_ledger_there_is_nothing_to_list_and_none_is_made(tmp_path):
    for command, words in ((purchases, []), (print_sweep_plan, ["--to", TREASURY])):
        done = await run(command, "--data-dir", tmp_path, *words)
        assert (done.exit_code, done.stderr) == (1, f"Error: there is no ledger in {tmp_path}\n")
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_is_no_ledger_is_named_in_a_sentence(tmp_path):
    (tmp_path / FILE).write_text("nonsense, and more than a header's worth of it" * 10)
    for command, words in ((purchases, []), (print_sweep_plan, ["--to", TREASURY])):
        done = await run(command, "--data-dir", tmp_path, *words)
        sentence = f"{tmp_path / FILE}: it is not a database; restore a backup (`toolserver db restore`)"
        assert (done.exit_code, done.stderr) == (1, f"Error: {sentence}\n")


# --- collecting


async def test_deposits_that_nobody_confirmed_are_found_on_the_chain_also_those_a_backup_forgot(tmp_path):
    async with fake_rpc() as fake:
        found = await sold(tmp_path)
        HighWater(tmp_path).raise_to("address", len(found.wallets) + 3)
        for number, tx in ((0, bytes([4]) * 32), (2, TX), (len(found.wallets) + 2, TX2)):
            fake.pay(address(number), 5 + number, tx)
        fake.now += 2000
        settings = {"rpc_urls": json.dumps([fake.url]), "xpub": XPUB}
        done = await run(purchases, "--data-dir", tmp_path, "--unclaimed", "--json", **settings)
        fewer = await run(purchases, "--data-dir", tmp_path, "--unclaimed", "--limit", 1, "--json", **settings)
    rows = json.loads(done.stdout)
    assert rows == [
        {"index": 2, "wallet": found.wallets[2], "amount_usd": "7.000000", "purchase": "quoted"}
        | {"waits_for": "its buyer to confirm it", "tx": None},
        {"index": 5, "wallet": checksum_address(address(5)), "amount_usd": "10.000000", "purchase": "lost"}
        | {"waits_for": "toolserver recover", "tx": None},
    ]
    assert json.loads(fewer.stdout) == rows[:1]
    assert XPUB not in done.output


async def test_a_plan_is_printed_as_json_and_nothing_else(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with fake_rpc() as fake:
        found = await sold(tmp_path)
        for wallet, usd, tx in zip(found.wallets, (7.5, 0.5, 1000), (TX, TX2, bytes([3]) * 32), strict=True):
            fake.pay(bytes.fromhex(wallet[2:]), usd, tx)
        fake.now += 2000
        settings = {"rpc_urls": json.dumps([fake.url]), "xpub": XPUB}
        done = await run(print_sweep_plan, "--data-dir", tmp_path, "--to", TREASURY, **settings)
        assert (done.exit_code, done.stderr) == (0, "")
        plan = json.loads(done.stdout)
        assert (plan["to"], plan["total"], plan["chain_id"]) == (TREASURY, 1_007_500_000, 8453)
        assert [one["path"] for one in plan["authorizations"]] == ["0/0", "0/2"]
        message = plan["authorizations"][1]["typed_data"]["message"]
        assert (message["from"], message["value"]) == (checksum_address(address(2)), 1_000_000_000)
        rich = await run(print_sweep_plan, "--data-dir", tmp_path, "--to", TREASURY, "--least-usd", 500, **settings)
        assert [one["index"] for one in json.loads(rich.stdout)["authorizations"]] == [2]
    assert XPUB not in done.output
    assert "SECRETKEY" not in done.output + caplog.text


@pytest.mark.parametrize(
    ("to", "settings", "why"),
    [
        ("0x12", {}, "an address must be 0x and 40 hexadecimal digits"),
        (TREASURY.lower().replace("0x77", "0xaB", 1), {}, "wrong checksum"),
        (TREASURY, {"xpub": ""}, "checksum"),
        (TREASURY, {"rpc_urls": "[]"}, "no server is configured"),
        (TREASURY, {"rpc_urls": '["http://127.0.0.1:9/KEY"]'}, "rpc 1: ClientConnectorError"),
        (TREASURY, {"rpc_urls": '["nonsense/KEY"]'}, "payments.rpc_urls"),
        (TREASURY, {"rpc_urls": '["https://KEY'}, "payments.rpc_urls: is not JSON"),
    ],
    ids=["no address", "mistyped", "no key", "no server", "a server that is down", "a wrong setting", "half a setting"],
)
async def test_a_plan_that_cannot_be_made_is_explained_without_showing_keys(tmp_path, to, settings, why):
    await sold(tmp_path)
    given = {"rpc_urls": '["http://127.0.0.1:9/KEY"]', "xpub": XPUB} | settings
    done = await run(print_sweep_plan, "--data-dir", tmp_path, "--to", to, **given)
    assert (done.exit_code, done.stdout) == (1, "")
    assert why in done.stderr
    assert "KEY" not in done.stderr
    assert XPUB not in done.stderr


async def test_a_plan_without_an_account_key_says_which_setting_is_missing(tmp_path):
    await sold(tmp_path)
    done = await run(print_sweep_plan, "--data-dir", tmp_path, "--to", TREASURY, rpc_urls='["http://127.0.0.1:9/"]')
    assert done.exit_code == 1
    assert "payments.xpub" in done.stderr


async def test_a_plan_says_where_to(tmp_path):
    done = await run(print_sweep_plan, "--data-dir", tmp_path)
    assert done.exit_code == 2
    assert "--to" in done.stderr
