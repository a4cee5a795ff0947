"""The public account of what was not charged: complete, by day, provable, and about nobody."""

import base64
import hashlib
import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta

import anyio
import httpx
import pytest

from tests.calls.parts import RICH, START
from tests.calls.shop import BEARER, DOWN, shop
from tests.calls.toy import FIRST, SECOND
from tests.receipts.test_merkle import consistent, mth, root_from_path, root_from_tiles, state, unbundled
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import BillingUnavailable
from toolserver.receipts.log_state import LogForked, UnchargedCall
from toolserver.receipts.transparency_log import CHECKPOINT_S, EVENTS, REMEMBERED
from toolserver.storage.errors import RowsRewritten
from toolserver.storage.group_commit import durable
from toolserver.storage.migrate import migrations, statements
from toolserver.storage.sealed_file import note_restored

LOG = "/api/payment/no-charge-log"
STATS = "/api/payment/no-charge-stats"


async def stats(s, **query):
    s.clock.advance(31)  # the statistics are kept for half a minute
    answer = await s.rest.get(STATS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def fill(s, count, reason="5xx"):
    """Events without calls."""
    at = s.clock.time()
    async with anyio.create_task_group() as tasks:
        for n in range(count):
            tasks.start_soon(s.evidence.log.record, UnchargedCall(at, reason, f"/api/pro/{n % 3}", 2))


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
    assert found["log"] == {"origin": origin, "size": 0, "root": base64.b64encode(root).decode()}
    assert (origin, size, root) == ("data.example/api/payment/no-charge-log", 0, hashlib.sha256(b"").digest())


@proves(
    "premium.no-charge-log", "no-charge.5xx", "no-charge.schema", "no-charge.stale", "charge.empty", "charge.all-failed"
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
    assert [event["seq"] for event in found["events"]] == [4, 3, 2, 1, 0]
    assert found["events"][4] | {"receipt_sha256": None} == {
        "seq": 0,
        "ts": "2027-01-15T08:00:00.000Z",
        "reason": "5xx",
        "endpoint": "/api/pro/broken",
        "credits": 3,
        "receipt_sha256": None,
    }


@proves("no-charge-log.days")
async def test_days_are_told_apart_and_another_day_can_be_asked_for(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 2)
        s.clock.advance(86400)
        await fill(s, 3, "stale_data")
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
    assert [found["events"][0]["seq"], found["events"][-1]["seq"]] == [EVENTS + 49, 50]
    assert len(found["events"]) == EVENTS


@proves("no-charge-log.proof")
async def test_an_auditor_can_rebuild_the_log_from_what_is_public_and_finds_every_event(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 700)
        receipt = (await s.buy("/api/pro/broken")).headers["x-service-receipt"]
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
    assert json.loads(entries[700])["receipt_sha256"] == hashlib.sha256(core).hexdigest()
    assert [json.loads(entry)["seq"] for entry in entries] == list(range(701))
    assert day["events"] == [json.loads(entry) for entry in reversed(entries[-EVENTS:])]
    assert day["log"] == {"origin": "data.example" + LOG, "size": 701, "root": base64.b64encode(root).decode()}


async def test_a_receipt_of_an_uncharged_call_comes_with_the_proof_that_the_log_has_it(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 10)
        bought = await s.buy("/api/pro/void")
        url = f"/api/receipt/{bought.headers['x-service-receipt-id']}"
        await fill(s, 5)
        proof = (await s.rest.get(url, headers=BEARER)).json()["log_proof"]
        vkey = await verifier(s)
        core = (await s.verify(bought.headers["x-service-receipt"]))["core"]

    origin, size, root = state(proof["checkpoint"], vkey)
    leaf = json.dumps(proof["leaf"], sort_keys=True, separators=(",", ":")).encode()
    assert core["log"] == {"origin": origin, "index": 10} == {"origin": origin, "index": proof["leaf"]["seq"]}
    assert root_from_path(leaf, 10, size, [bytes.fromhex(step) for step in proof["path"]]) == root
    assert size == proof["size"] == 16


async def test_proofs_are_also_given_ready_made(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 5)
        _, _, before = await published(s)
        await fill(s, 8)
        s.clock.advance(CHECKPOINT_S)
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


async def test_the_log_is_signed_at_most_once_a_minute_and_only_when_it_has_grown(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 1)
        first = (await s.evidence.log.checkpoint()).note
        await fill(s, 1)
        s.clock.advance(CHECKPOINT_S - 1)
        assert (await s.evidence.log.checkpoint()).note == first
        s.clock.advance(1)
        second = await s.evidence.log.checkpoint()
        s.clock.advance(3600)
        assert await s.evidence.log.checkpoint() == second
    assert second.size == 2


async def test_a_log_that_was_rewritten_is_never_signed_again(tmp_path):
    async with shop(tmp_path) as s:
        await fill(s, 3)
        await s.evidence.log.checkpoint()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as db:
        db.execute("DROP TRIGGER log_node_is_never_changed")
        db.execute("UPDATE log_node SET hash=? WHERE level=0 AND idx=2", (bytes(32),))
    db.close()
    with pytest.raises(RowsRewritten, match="log_node"):
        async with shop(tmp_path):
            pass
    await accept(tmp_path / "ledger.sqlite3")
    later = ManualClock(START + timedelta(hours=1))
    async with shop(tmp_path, clock=later) as s:
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


async def test_a_log_that_shrank_is_never_signed_again(tmp_path, caplog):
    async with shop(tmp_path) as s:
        await fill(s, 3)
        signed = await s.evidence.log.checkpoint()
    with sqlite3.connect(tmp_path / "ledger.sqlite3") as db:
        db.execute("DROP TRIGGER no_charge_is_never_deleted")
        db.execute("DELETE FROM no_charge WHERE seq=2")
    db.close()
    await accept(tmp_path / "ledger.sqlite3")
    async with shop(tmp_path, clock=ManualClock(START + timedelta(hours=1))) as s:
        with pytest.raises(LogForked, match="has 2 leaves and had 3"):
            await s.evidence.log.checkpoint()
        assert (await s.evidence.log._store.head()).last == signed
    assert "does not extend its last checkpoint" in caplog.text


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
        await fill(s, more)
        with pytest.raises(LogForked):
            await s.evidence.log.checkpoint()
        with pytest.raises(LogForked):
            await s.evidence.log.checkpoint()


async def test_the_log_goes_on_where_it_was_after_a_restart(tmp_path):
    async with shop(tmp_path) as s:
        await s.buy("/api/pro/broken")
        before = await published(s)
    async with shop(tmp_path) as s:
        assert await published(s) == before
        s.clock.advance(CHECKPOINT_S)
        await s.buy("/api/pro/broken")
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


@proves("charge.hang-up")
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
        entries = await tile(s, "entries", 0, 3)
        public = entries + (await s.rest.get(STATS)).content + (await s.rest.get(f"{LOG}/checkpoint")).content
    digest = token_hash(RICH).hex()
    for secret in (RICH, RICH[-8:], digest, digest[:16], "my-nonce", "my-agent", call, "127.0.0.1"):
        assert secret.encode() not in public


async def test_concurrent_uncharged_calls_are_leaves_of_one_tree(tmp_path):
    async with shop(tmp_path) as s:
        await s.ledger.mint(RICH, 10_000, cause="more")
        async with anyio.create_task_group() as tasks:
            for _ in range(300):
                tasks.start_soon(s.buy, "/api/pro/void")
        assert await s.ledger.balance(RICH) == 10_100
        _, size, root = await published(s)
        entries = unbundled(await tile(s, "entries", 0, 256)) + unbundled(await tile(s, "entries", 1, 44))
        found = await stats(s)
    assert (size, found["count"]) == (300, 300)
    assert mth(entries) == root
    assert len({json.loads(entry)["receipt_sha256"] for entry in entries}) == 300
