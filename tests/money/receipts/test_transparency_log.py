"""The public account of what was not charged: complete, by day, provable, and about nobody."""

import base64
import hashlib
import itertools
import json
import re
import shutil
import sqlite3
from contextlib import asynccontextmanager, closing
from datetime import timedelta

import anyio
import httpx
import pytest

from tests.calls.parts import RICH, START
from tests.calls.shop import BEARER, DOWN, shop
from tests.calls.toy import FIRST, SECOND
from tests.money.receipts.old_log import make_old_log
from tests.money.receipts.stores import lease_at
from tests.money.receipts.test_merkle import consistent, mth, root_from_path, root_from_tiles, state, unbundled
from tests.requirements import proves
from toolserver.calls.paid_call import LEDGER_WAITS
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import BillingUnavailable
from toolserver.money.books.sql_reconciliation import check_books
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import LogForked, LogMark, UnchargedCall, open_bucket, read_hour
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.money.receipts.transparency_log import (
    CLOSE_EVERY_S,
    DAYS,
    EVENTS,
    LEASE_S,
    MINUTE_S,
    REMEMBERED,
    TransparencyLog,
    begin_log,
    name_log,
    read_mark,
)
from toolserver.sql.errors import RowsRewritten
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.migrate import migrations, statements
from toolserver.sql.sealed_file import note_restored
from toolserver.sql.sqlite import durable, in_memory

LOG = "/api/payment/no-charge-log"
STATS = "/api/payment/no-charge-stats"
OWNERS = itertools.count()


async def stats(s, **query):
    s.clock.advance(31)  # the statistics are kept for half a minute
    answer = await s.rest.get(STATS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def book(s, count, reason="5xx"):
    """Calls of as many tokens, each booked in a bucket of its own."""
    at = s.clock.time()
    async with anyio.create_task_group() as tasks:
        for n in range(count):
            call = UnchargedCall(at, f"{next(OWNERS):064x}", reason, f"/api/pro/{n % 3}", 2)
            tasks.start_soon(s.evidence.log.record, call)


async def fill(s, count, reason="5xx"):
    """So many leaves."""
    await book(s, count, reason)
    if count:
        await s.close_hour()


async def published(s):
    """The state of the log as an auditor gets it."""
    note = await s.rest.get(f"{LOG}/checkpoint")
    assert note.headers["content-type"] == "text/plain; charset=utf-8"
    return state(note.text, await verifier(s))


async def verifier(s):
    return (await s.rest.get("/.well-known/service-receipt-keys.json")).json()["log"]["verifier"]


async def tile(s, level, number, width):
    path = f"{LOG}/tile/{level}/{number:03}" + ("" if width == 256 else f".p/{width}")
    answer = await s.rest.get(path)
    assert answer.status_code == 200, path
    assert answer.headers["content-type"] == "application/octet-stream"
    assert ("immutable" in answer.headers["cache-control"]) == (width == 256)
    return answer.content


async def test_a_day_without_anything_is_zeros(tmp_path):
    async with shop(tmp_path) as s:
        found = await stats(s)
        origin, size, root = await published(s)
    assert (found["date"], found["count"], found["credits_skipped"], found["events"]) == ("2027-01-15", 0, 0, [])
    assert (found["by_reason"], found["by_endpoint"], found["dates"]) == ({}, {}, None)
    assert found["log"] == {"origin": origin, "size": 0, "root": base64.b64encode(root).decode(), "waiting": 0}
    assert (origin, size, root) == ("data.example/api/payment/no-charge-log", 0, hashlib.sha256(b"").digest())


@proves(
    "premium.no-charge-log",
    "no-charge.5xx",
    "no-charge.schema",
    "no-charge.stale",
    "charge.empty",
    "charge.all-failed",
    "no-charge.empty",
)
async def test_every_way_a_call_can_be_free_of_charge_is_in_the_account(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy()
        for path in ("/api/pro/broken", "/api/pro/liar", "/api/pro/void"):
            await s.buy(path)
        s.internet.serves(FIRST, DOWN)
        s.clock.advance(400)
        assert (await s.buy()).status_code == 200  # stale
        s.internet.serves(SECOND, DOWN)
        s.clock.advance(4000)
        assert (await s.buy()).status_code == 503
        found = await stats(s, dates=1)
        left = await s.ledger.balance(RICH)

    assert left == 98
    assert found["by_reason"] == {"5xx": 2, "empty_result": 1, "schema_failure": 1, "stale_data": 1}
    assert found["by_endpoint"] == {
        "/api/pro/report": 2,
        "/api/pro/broken": 1,
        "/api/pro/liar": 1,
        "/api/pro/void": 1,
    }
    assert (found["count"], found["credits_skipped"]) == (5, 13)
    assert found["dates"] == [{"date": "2027-01-15", "count": 5}]
    assert [event["seq"] for event in found["events"]] == [None] * 5
    assert found["log"]["waiting"] == 5
    assert found["events"][4] | {"receipt_sha256": None} == {
        "seq": None,
        "ts": "2027-01-15T08:00:00.000Z",
        "reason": "5xx",
        "endpoint": "/api/pro/broken",
        "credits": 3,
        "receipt_sha256": None,
    }


@proves("no-charge-log.days")
async def test_days_are_told_apart_and_another_day_can_be_asked_for(tmp_path):
    async with shop(tmp_path) as s:
        await book(s, 2)
        s.clock.advance(86400)
        await book(s, 3, "stale_data")
        today, before = await stats(s, dates="true"), await stats(s, date="2027-01-15")
        never = await stats(s, date="1999-12-31")
    assert (today["date"], today["count"], today["by_reason"]) == ("2027-01-16", 3, {"stale_data": 3})
    assert (before["count"], before["by_reason"]) == (2, {"5xx": 2})
    assert [day["count"] for day in today["dates"]] == [3, 2]
    assert never["count"] == 0


@pytest.mark.parametrize("date", ["yesterday", "2027-13-01", "20270115", "1", "2027-01-15T00:00:00Z"])
async def test_what_is_no_day_is_refused(tmp_path, date):
    async with shop(tmp_path) as s:
        assert (await s.rest.get(STATS, params={"date": date})).status_code == 400


async def test_a_day_shows_its_last_events_only_but_counts_them_all(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, EVENTS + 50)
        found = await stats(s)
    assert found["count"] == EVENTS + 50
    seqs = [event["seq"] for event in found["events"]]
    assert (len(set(seqs)), min(seqs) >= 0, max(seqs) < EVENTS + 50) == (EVENTS, True, True)


@proves("no-charge-log.proof")
async def test_an_auditor_can_rebuild_the_log_from_what_is_public_and_finds_every_event(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 700)
        receipt = (await s.buy("/api/pro/broken")).headers["x-service-receipt"]
        await s.close_hour()
        _, size, root = await published(s)
        tiles = dict.fromkeys(((0, 0), (0, 1), (0, 2), (1, 0)))
        for level, n in tiles:
            tiles[level, n] = await tile(s, level, n, min(256, size // 256**level - n * 256))
        entries = []
        for n in range(3):
            entries += unbundled(await tile(s, "entries", n, min(256, size - n * 256)))
        day = await stats(s)

    assert size == 701
    assert root_from_tiles(size, lambda level, n, width: tiles[level, n]) == root == mth(entries)
    core = base64.urlsafe_b64decode(receipt.split(".")[1] + "==")
    digest = hashlib.sha256(core)
    assert json.loads(entries[700])["receipts_root"] == hashlib.sha256(b"\0" + digest.digest()).hexdigest()
    assert [json.loads(entry)["seq"] for entry in entries] == list(range(701))
    assert (day["events"][0]["seq"], day["events"][0]["receipt_sha256"]) == (700, digest.hexdigest())
    assert day["count"] == sum(json.loads(entry)["calls"] for entry in entries)
    assert day["credits_skipped"] == sum(json.loads(entry)["credits"] for entry in entries)
    root64 = base64.b64encode(root).decode()
    assert day["log"] == {"origin": "data.example" + LOG, "size": 701, "root": root64, "waiting": 0}


@proves("no-charge-log.bucket")
async def test_a_receipt_of_an_uncharged_call_comes_with_the_proof_when_its_hour_is_over(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 10)
        bought = [await s.buy("/api/pro/void") for _ in range(3)]
        receipts = [each.headers["x-service-receipt"] for each in bought]
        url = f"/api/receipt/{bought[1].headers['x-service-receipt-id']}"
        early = (await s.rest.get(url, headers=BEARER)).json()
        said_early = await s.verify(receipts[1])
        await book(s, 5)
        await s.close_hour()
        proof = (await s.rest.get(url, headers=BEARER)).json()["log_proof"]
        vkey, verdict = await verifier(s), await s.verify(receipts[1])
        core = verdict["core"]
        named = {"hour": core["log"]["hour"], "key": core["log"]["key"]}
        public = await s.rest.get(f"{LOG}/bucket", params=named | {"receipt": proof_hash(receipts[1])})

    assert (early["log_proof"], early["log_due"]) == (None, "2027-01-15T10:01:30.000Z")
    assert (said_early["valid"], said_early["checks"]["in_log"]) == (True, None)
    assert (verdict["valid"], verdict["checks"]["in_log"]) == (True, True)
    assert public.json() == proof
    origin, size, root = state(proof["checkpoint"], vkey)
    leaf = proof["leaf"]
    assert root_from_path(written(leaf), leaf["seq"], size, unhexed(proof["path"])) == root
    assert size == proof["size"] == 16
    assert (leaf["calls"], leaf["credits"], leaf["receipts"], leaf["reason"]) == (3, 9, 3, "empty_result")
    assert core["log"] == {"origin": origin, "hour": leaf["hour"], "key": leaf["key"], "salt": core["log"]["salt"]}
    inside, digest = proof["receipt"], bytes.fromhex(proof_hash(receipts[1]))
    found = root_from_path(digest, inside["index"], inside["size"], unhexed(inside["path"]))
    assert (found.hex(), inside["size"]) == (leaf["receipts_root"], 3)


def proof_hash(jws):
    return hashlib.sha256(base64.urlsafe_b64decode(jws.split(".")[1] + "==")).hexdigest()


def written(leaf):
    return json.dumps(leaf, sort_keys=True, separators=(",", ":")).encode()


def unhexed(path):
    return [bytes.fromhex(step) for step in path]


async def test_only_who_holds_the_receipt_and_knows_the_token_can_open_the_key_of_a_bucket(tmp_path):
    async with shop(tmp_path) as s:
        place = (await s.verify((await s.buy("/api/pro/void")).headers["x-service-receipt"]))["core"]["log"]
        again = (await s.verify((await s.buy("/api/pro/void")).headers["x-service-receipt"]))["core"]["log"]
        s.clock.advance(3600)
        later = (await s.verify((await s.buy("/api/pro/void")).headers["x-service-receipt"]))["core"]["log"]
    token, salt = token_hash(RICH).hex(), bytes.fromhex(place["salt"])
    about = ("/api/pro/void", "empty_result", read_hour(place["hour"]), salt)
    assert open_bucket(token, *about).hex() == place["key"]
    assert open_bucket("0" * 64, *about).hex() != place["key"]
    assert place == again
    assert not {place["key"], place["salt"]} & {later["key"], later["salt"]}


@proves("no-charge-log.bucket")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 404),
        ({"receipt": "0" * 64}, 404),
        ({"key": "0" * 64}, 404),
        ({"key": "0" * 63}, 400),
        ({"key": "G" * 64}, 400),
        ({"receipt": "0"}, 400),
        ({"hour": "2027-01-15T08:00:01Z"}, 400),
        ({"hour": "2027-01-15"}, 400),
    ],
)
async def test_a_bucket_is_asked_for_by_its_hour_and_key_and_says_when_it_will_be_there(tmp_path, query, status):
    async with shop(tmp_path) as s:
        bought = await s.buy("/api/pro/void")
        place = (await s.verify(bought.headers["x-service-receipt"]))["core"]["log"]
        asked = {"hour": place["hour"], "key": place["key"]} | query
        s.clock.advance(1800)
        early = await s.rest.get(f"{LOG}/bucket", params=asked)
        await s.close_hour()
        late = await s.rest.get(f"{LOG}/bucket", params=asked)
    assert (early.status_code, late.status_code) == (status, 200 if query == {} else status)
    assert early.headers.get("retry-after") == ("1890" if status == 404 else None)
    assert "retry-after" not in late.headers


async def test_an_hour_in_which_nothing_was_booked_is_not_waited_for_once_it_is_over(tmp_path):
    async with shop(tmp_path) as s:
        asked = {"hour": "2027-01-15T08:00:00Z", "key": "0" * 64}
        open_ = await s.rest.get(f"{LOG}/bucket", params=asked)
        await s.close_hour()
        over = await s.rest.get(f"{LOG}/bucket", params=asked)
    assert ("retry-after" in open_.headers, "retry-after" in over.headers) == (True, False)


async def test_proofs_are_also_given_ready_made(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 5)
        _, _, before = await published(s)
        await fill(s, 8)
        _, size, after = await published(s)
        leaf = unbundled(await tile(s, "entries", 0, 13))[3]
        included = (await s.rest.get(f"{LOG}/inclusion?index=3&size=13")).json()
        follows = (await s.rest.get(f"{LOG}/consistency?first=5&second=13")).json()

    assert (size, included["index"], included["size"]) == (13, 3, 13)
    assert root_from_path(leaf, 3, 13, [bytes.fromhex(step) for step in included["path"]]) == after
    assert consistent(5, 13, before, after, [bytes.fromhex(step) for step in follows["path"]])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/tile/0/000.p/6", 404),
        ("/tile/0/000", 404),
        ("/tile/0/001.p/1", 404),
        ("/tile/1/000.p/1", 404),
        ("/tile/63/000.p/1", 404),
        ("/tile/0/x999/x999/x999/x999/x999/x999/999.p/1", 404),
        ("/tile/nonsense", 404),
        ("/tile/", 404),
        ("/inclusion?index=5&size=5", 404),
        ("/inclusion?index=0&size=6", 404),
        ("/inclusion?index=0&size=0", 404),
        ("/consistency?first=0&second=5", 404),
        ("/consistency?first=5&second=6", 404),
        ("/inclusion?index=0", 400),
        ("/inclusion?index=-1&size=3", 400),
        ("/inclusion?index=1e3&size=3", 400),
        ("/inclusion?index=9999999999999999&size=9999999999999999", 404),
    ],
)
async def test_what_the_log_has_not_is_not_there(tmp_path, path, status):
    async with shop(tmp_path) as s:
        await fill(s, 5)
        assert (await s.rest.get(LOG + path)).status_code == status


@proves("no-charge-log.hours")
async def test_calls_are_booked_at_once_and_the_closed_hour_is_appended_and_signed_by_one_task(tmp_path):
    async with shop(tmp_path) as s:
        log = s.evidence.log
        empty = await log.checkpoint()
        await book(s, 3)
        s.clock.advance(3600 + 59)
        assert await log.close_hours() == 0  # calls that end with their hour are still being booked
        assert (await log.checkpoint(), (await stats(s))["count"]) == (empty, 3)
        await s.close_hour()
        signed = await log.checkpoint()
        assert (signed.size, await log.close_hours()) == (3, 0)
        s.clock.advance(86400)
        assert await log.checkpoint() == signed


async def test_hours_that_were_missed_are_caught_up_each_with_leaves_of_its_own(tmp_path):
    async with shop(tmp_path) as s:
        for _ in range(3):
            await s.buy("/api/pro/void")
            await s.buy("/api/pro/void")
            s.clock.advance(3600)
    async with shop(tmp_path, clock=ManualClock(START + timedelta(hours=50))) as s:
        await s.evidence.log.close_hours()
        leaves = [json.loads(entry) for entry in unbundled(await tile(s, "entries", 0, 3))]
        _, size, root = await published(s)
    assert [(leaf["hour"][11:13], leaf["calls"]) for leaf in leaves] == [("08", 2), ("09", 2), ("10", 2)]
    assert (size, root) == (3, mth([written(leaf) for leaf in leaves]))


async def test_a_call_that_ends_when_its_hour_is_in_the_log_is_booked_in_the_next_one(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy("/api/pro/void")
        await s.close_hour()
        late = UnchargedCall(START.timestamp() + 3599, "0" * 64, "5xx", "/x", 1)
        await s.evidence.log.record(late)
        assert (await stats(s))["count"] == 2
        await s.close_hour()
        leaves = [json.loads(entry) for entry in unbundled(await tile(s, "entries", 0, 2))]
    assert [leaf["hour"][11:13] for leaf in leaves] == ["08", "09"]


@proves("no-charge-log.hours")
async def test_only_the_one_that_holds_the_lease_appends_until_it_has_been_silent_for_two_minutes(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 1)
        s.clock.advance(3600 - 61)  # the hour is full again
        await book(s, 1)
        s.clock.advance(3600)
        assert await SqlReceiptStore(s.file).take_lease(lease_at(s.clock.time(), "other", lasts_s=LEASE_S))
        s.clock.advance(61)
        assert await s.evidence.log.close_hours() == 0
        assert (await s.evidence.log.checkpoint()).size == 1
        s.clock.advance(LEASE_S)
        assert await s.evidence.log.close_hours() == 1
        assert (await s.evidence.log.checkpoint()).size == 2


@proves("no-charge-log.never-smaller")
async def test_a_log_that_was_rewritten_is_never_signed_again(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 3)
        await s.evidence.log.checkpoint()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as db, db:
        db.execute("DROP TRIGGER log_node_is_never_changed")
        db.execute("UPDATE log_node SET hash=? WHERE level=0 AND idx=2", (bytes(32),))
    with pytest.raises(RowsRewritten, match="log_node"):
        async with shop(tmp_path):
            pass
    await accept(tmp_path / "ledger.sqlite3")
    later = ManualClock(START + timedelta(hours=1))
    async with shop(tmp_path, clock=later) as s:
        with pytest.raises(LogForked):
            await fill(s, 1)
        with pytest.raises(LogForked):
            await s.evidence.log.checkpoint()
        assert (await s.rest.get(f"{LOG}/checkpoint")).status_code == 500


async def accept(path):
    """Vouch for the rows, so that what is left is the log's own refusal."""
    triggers = [text for step in migrations() for text in statements(step.sql) if "CREATE TRIGGER" in text]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        found = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'")}
        for text in triggers:
            if re.search(r"CREATE TRIGGER (\w+)", text)[1] not in found:
                db.execute(text[text.index("CREATE TRIGGER") :])
    async with durable(path) as file:
        await file.alone(file.rows.accept)


@proves("no-charge-log.never-smaller")
async def test_a_log_that_shrank_is_never_signed_again(tmp_path, caplog):
    async with shop(tmp_path) as s:
        await fill(s, 3)
        signed = await s.evidence.log.checkpoint()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as db, db:
        db.execute("DROP TRIGGER no_charge_is_never_deleted")
        db.execute("DELETE FROM no_charge WHERE seq=2")
    await accept(tmp_path / "ledger.sqlite3")
    async with shop(tmp_path, clock=ManualClock(START + timedelta(hours=1))) as s:
        with pytest.raises(LogForked, match="has 2 leaves and had 3"):
            await s.evidence.log.checkpoint()
        assert (await SqlReceiptStore(s.file).head()).last == signed
    assert "does not extend its last checkpoint" in caplog.text


@proves("no-charge-log.mark")
@pytest.mark.parametrize("more", [0, 1, 2, 5])
async def test_a_log_that_a_backup_made_shorter_is_never_signed_however_it_grows(tmp_path, more):
    file = tmp_path / "ledger.sqlite3"
    async with shop(tmp_path) as s:
        await fill(s, 3)
        await s.evidence.log.checkpoint()
    shutil.copy(file, tmp_path / "backup")
    async with shop(tmp_path, clock=ManualClock(START + timedelta(hours=1))) as s:
        await fill(s, 2)
        await s.evidence.log.checkpoint()
    shutil.copy(tmp_path / "backup", file)
    note_restored(file)
    async with shop(tmp_path, clock=ManualClock(START + timedelta(hours=2))) as s:
        if more:
            with pytest.raises(LogForked):
                await fill(s, more)
        with pytest.raises(LogForked):
            await s.evidence.log.checkpoint()
        with pytest.raises(LogForked):
            await s.evidence.log.checkpoint()


async def test_the_log_goes_on_where_it_was_after_a_restart(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy("/api/pro/broken")
        await s.close_hour()
        before = await published(s)
    async with shop(tmp_path, clock=s.clock) as s:
        assert await published(s) == before
        await s.buy("/api/pro/broken")
        await s.close_hour()
        origin, size, _ = await published(s)
    assert (origin, size) == (before[0], 2)


async def test_a_service_under_a_new_address_signs_under_its_new_name(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 1)
        await published(s)
    async with shop(tmp_path, base_url="https://other.example:8443/data/") as s:
        origin, size, _ = state((await s.evidence.log.checkpoint()).note, s.evidence.log.verifier)
    assert (origin, size) == ("other.example:8443/data/api/payment/no-charge-log", 1)


@proves("no-charge.circuit-breaker", "payment-error.billing_unavailable")
async def test_a_ledger_that_is_away_is_one_event_for_each_token_minute_and_endpoint(tmp_path, monkeypatch):
    async def away(*args, **named):
        raise BillingUnavailable("away", headers={"Retry-After": "30"})

    async with shop(tmp_path) as s:
        monkeypatch.setattr(s.ledger, "reserve", away)
        for _ in range(20):
            assert (await s.buy()).json()["error"] == "billing_unavailable"
        await s.buy("/api/pro/void")
        other = await s.rest.get("/api/pro/report", headers={"authorization": "Bearer svc_live_" + "c" * 64})
        assert other.status_code == 402
        assert (await stats(s))["by_endpoint"] == {"/api/pro/report": 2, "/api/pro/void": 1}
        s.clock.advance(60)
        await s.buy()
        found = await stats(s)
    assert (found["count"], found["by_reason"]) == (4, {"circuit_breaker": 4})
    assert {event["receipt_sha256"] for event in found["events"]} == {None}


async def test_invented_tokens_cannot_fill_the_log(tmp_path):
    async with shop(tmp_path) as s:
        heard = [s.evidence.log.first_this_minute("circuit_breaker", f"{n:064}", "/x") for n in range(REMEMBERED + 50)]
        assert sum(heard) == REMEMBERED
        s.clock.advance(60)
        assert s.evidence.log.first_this_minute("circuit_breaker", "x", "/x")


@proves("charge.hang-up", "no-charge.cancelled")
async def test_a_caller_who_hangs_up_is_in_the_account_without_a_receipt(tmp_path):
    async with shop(tmp_path) as s:
        started = anyio.Event()

        async def never(request: httpx.Request):
            started.set()
            await anyio.sleep_forever()

        s.internet.serves(FIRST, never)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(s.buy)
            await started.wait()
            tasks.cancel_scope.cancel()
        assert await s.ledger.balance(RICH) == 100
        found = await stats(s)
    assert [(event["reason"], event["receipt_sha256"]) for event in found["events"]] == [("cancelled", None)]


@proves("tokens.fingerprint")
async def test_nothing_public_leads_to_a_token_or_a_caller(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy("/api/pro/broken", x_agent_nonce="my-nonce")
        await s.buy("/api/pro/void", user_agent="my-agent")
        call = (await s.buy("/api/pro/void")).headers["x-service-receipt-id"].removeprefix("rcpt_")
        await s.close_hour()
        entries = await tile(s, "entries", 0, 2)
        public = entries + (await s.rest.get(STATS)).content + (await s.rest.get(f"{LOG}/checkpoint")).content
    digest = token_hash(RICH).hex()
    for secret in (RICH, RICH[-8:], digest, digest[:16], "my-nonce", "my-agent", call, "127.0.0.1"):
        assert secret.encode() not in public


@proves("no-charge-log.leaves")
async def test_concurrent_uncharged_calls_of_a_token_are_one_leaf_with_all_their_receipts(tmp_path):
    async with shop(tmp_path) as s:
        await s.ledger.mint(RICH, 10_000, cause="more")
        places = anyio.Semaphore(
            LEDGER_WAITS.share
        )  # those of one client: of more, some are refused, for another reason

        async def buy_in_turn() -> None:
            async with places:
                await s.buy("/api/pro/void")

        async with anyio.create_task_group() as tasks:
            for _ in range(300):
                tasks.start_soon(buy_in_turn)
        assert await s.ledger.balance(RICH) == 10_100
        before = await stats(s)
        await s.close_hour()
        _, size, root = await published(s)
        (entry,) = unbundled(await tile(s, "entries", 0, 1))
        found = await stats(s)
    assert (size, mth([entry])) == (1, root)
    assert (found["count"], before["count"], before["log"]["waiting"]) == (300, 300, 300)
    leaf = json.loads(entry)
    assert (leaf["calls"], leaf["receipts"]) == (300, 300)
    assert len({event["receipt_sha256"] for event in found["events"]}) == EVENTS


async def test_an_old_log_goes_on_with_its_leaves_and_its_last_state_is_the_beginning_of_the_new(tmp_path):
    folder = tmp_path / "old"
    old = make_old_log(folder, 2)
    async with shop(folder) as s:
        assert (await s.rest.get(f"{LOG}/checkpoint")).text == old.note
        assert unbundled(await tile(s, "entries", 0, 2)) == old.entries
        verdicts = [await s.verify(jws) for jws in old.receipts]
        assert [(verdict["valid"], verdict["checks"]["in_log"]) for verdict in verdicts] == [(True, True)] * 2
        proof = (await s.rest.get(f"/api/receipt/{verdicts[1]['core']['id']}", headers=BEARER)).json()["log_proof"]
        assert root_from_path(written(proof["leaf"]), 1, 2, unhexed(proof["path"])) == old.root
        before = await stats(s, dates=1)
        await s.buy("/api/pro/void")
        await s.close_hour()
        after, (_, size, root) = await stats(s), await published(s)
        steps = (await s.rest.get(f"{LOG}/consistency?first=2&second=3")).json()["path"]
    assert (before["count"], before["credits_skipped"]) == (2, 4)
    assert before["dates"] == [{"date": "2027-01-15", "count": 2}]
    assert before["events"] == [json.loads(entry) for entry in reversed(old.entries)]
    assert (after["count"], [event["seq"] for event in after["events"]]) == (3, [2, 1, 0])
    assert consistent(2, size, old.root, root, unhexed(steps))
    async with durable(folder / "ledger.sqlite3") as file:
        checks = await check_books(file, file.path, read_mark(HighWater(folder)), int(s.clock.time() * 1000))
    assert {check.name: check.differences for check in checks if check.differences} == {}


@pytest.fixture
def clock():
    return ManualClock(START)


@asynccontextmanager
async def open_empty_log(folder, clock):
    """A log over a new store in memory, with the keys and the marks of a folder."""
    keys = KeyRing(folder / "log.json", clock)
    async with in_memory() as rows:
        yield TransparencyLog(SqlReceiptStore(rows), keys, origin="o", clock=clock, marks=HighWater(folder))


@pytest.fixture
async def quiet(tmp_path, clock):
    """A log of which nobody has heard."""
    async with open_empty_log(tmp_path, clock) as log:
        yield log


async def test_the_same_is_heard_once_in_each_minute_of_the_clock(quiet, clock):
    clock.advance(30)
    heard = ("5xx", "owner", "/x")
    assert [quiet.first_this_minute(*heard) for _ in range(2)] == [True, False]
    for other in (("stale_data", "owner", "/x"), ("5xx", "other", "/x"), ("5xx", "owner", "/y")):
        assert quiet.first_this_minute(*other)
    clock.advance(29.5)
    assert not quiet.first_this_minute(*heard)
    clock.advance(0.5)
    assert quiet.first_this_minute(*heard)
    assert (EVENTS, DAYS, CLOSE_EVERY_S, LEASE_S, MINUTE_S, REMEMBERED) == (200, 1000, 30.0, 120.0, 60.0, 10_000)


async def test_an_hour_is_closed_a_minute_after_its_end_and_due_until_it_is_signed(quiet, clock):
    call = UnchargedCall(clock.time(), "f" * 64, "5xx", "/x", 2)
    hour = int(clock.time() // 3600)
    assert await quiet.due_in(hour) == 3660 + 30
    await quiet.record(call)
    clock.advance(3659)
    assert (await quiet.close_hours(), await quiet.due_in(hour)) == (0, 31)
    clock.advance(1)
    assert (await quiet.due_in(hour), await quiet.due_in(hour - 1)) == (30, None)
    bucket = quiet.buckets.name(call, hour)
    assert await quiet.prove_bucket(hour, bucket.key, None) is None
    assert (await quiet.close_hours(), await quiet.close_hours(), await quiet.due_in(hour)) == (1, 0, None)
    signed = await quiet.checkpoint()
    assert (signed.size, signed.at) == (1, int(clock.time() * 1000))
    leaf = await quiet.leaf(0)
    proof = {"leaf": leaf, "size": 1, "path": [], "checkpoint": signed.note}
    assert await quiet.prove_leaf(0) == await quiet.prove_bucket(hour, bucket.key, None) == proof
    assert await quiet.prove_bucket(hour, bucket.key, bytes(32)) is None
    assert (await quiet.prove_leaf(1), await quiet.leaf(1)) == (None, None)
    assert leaf["key"] == bucket.key.hex()


async def test_a_receipt_is_in_the_log_when_its_hour_is(quiet, clock):
    digest = "ab" * 32
    call = UnchargedCall(clock.time(), "f" * 64, "5xx", "/x", 2, digest)
    hour = int(clock.time() // 3600)
    key = quiet.buckets.name(call, hour).key
    await quiet.record(call)
    assert await quiet.has_receipt(hour, key, bytes.fromhex(digest)) is None
    assert await quiet.has_receipt(hour, key, bytes(32)) is False
    clock.advance(3660)
    await quiet.close_hours()
    assert await quiet.has_receipt(hour, key, bytes.fromhex(digest)) is True
    assert await quiet.has_receipt(hour, key, bytes(32)) is False
    proof = await quiet.prove_bucket(hour, key, bytes.fromhex(digest))
    assert proof["receipt"] == {"index": 0, "size": 1, "path": []}


def test_a_second_log_has_a_number_in_its_name_and_begins_with_the_leaves_there_are(tmp_path):
    marks = HighWater(tmp_path)
    assert (name_log("o", marks), read_mark(marks)) == ("o", None)
    assert begin_log(marks, LogMark(3, bytes(32))) == 2
    assert (name_log("o", marks), read_mark(marks)) == ("o/2", LogMark(3, bytes(32)))
    assert begin_log(marks, LogMark(4, bytes(32))) == 3
    assert name_log("o", marks) == "o/3"
    marks.change("log", lambda before: {"size": "many"})
    with pytest.raises(MarksBroken, match="cannot be read"):
        read_mark(marks)


@proves("no-charge-log.mark")
async def test_what_was_signed_is_kept_outside_the_database_and_never_goes_back(quiet, clock, tmp_path):
    empty = await quiet.checkpoint()
    assert read_mark(HighWater(tmp_path)) == LogMark(0, empty.root)
    await quiet.record(UnchargedCall(clock.time(), "f" * 64, "5xx", "/x", 2))
    clock.advance(3660)
    await quiet.close_hours()
    signed = await quiet.checkpoint()
    assert read_mark(HighWater(tmp_path)) == LogMark(1, signed.root)
    async with open_empty_log(tmp_path, clock) as restored:
        for _ in range(2):
            with pytest.raises(LogForked):
                await restored.checkpoint()
    assert read_mark(HighWater(tmp_path)) == LogMark(1, signed.root)
