"""Results kept for keys: their shared bytes are stored once, and what earlier versions kept whole is still read."""

import hashlib
import sqlite3
import zlib
from contextlib import closing

import pytest

from tests.calls.charging import open_stand
from tests.calls.parts import START
from tests.postgres import POSTGRES, terms_of
from toolserver.calls.idempotency import (
    KeptResult,
    KeyClaim,
    KeyedCall,
    KeyedCharge,
    NewKeyedCall,
    SharedBytes,
)
from toolserver.calls.idempotency_store import (
    KEEP_MS,
    LONGER_MS,
    TOGETHER,
    SqlIdempotencyStore,
    delete_keyed,
    find_keyed,
    keep_result,
    store_keyed,
    sweep_shared,
)
from toolserver.clock import ManualClock
from toolserver.core.caller import new_call_id
from toolserver.sql.migrate import migrate, migrations
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.sqlite import durable

NOW = 1_000_000
PAYLOAD = SharedBytes(b"payload " * 1000)


@pytest.fixture(params=["sqlite", POSTGRES])
async def file(request, tmp_path):
    opened = open_postgres(terms_of(tmp_path)) if request.param == "postgres" else durable(tmp_path / "l.sqlite3")
    async with opened as file:
        yield file


def sold(key, own=b"own ", shared=PAYLOAD):
    return NewKeyedCall(KeyClaim(("s", key), "r"), f"call_{key}", KeptResult(own, shared))


async def store(file, *calls, at=NOW):
    await file.alone(lambda db: store_keyed(db, calls, at))


async def find(file, *names, at=NOW):
    return await file.alone(lambda db: find_keyed(db, names, at))


async def read(file, sql):
    return await file.read(lambda db: db.execute(sql).fetchall())


async def test_what_results_share_is_stored_once_and_each_comes_back_whole(file):
    await store(file, *(sold(str(number), b"%d " % number) for number in range(100)))
    await store(file, sold("other", b"o ", SharedBytes(b"another")), sold("none", b"alone", None))

    assert sorted(await read(file, "SELECT sha256 FROM shared_result")) == sorted(
        [(PAYLOAD.sha256,), (hashlib.sha256(b"another").digest(),)]
    )
    names = [("s", key) for key in ("7", "99", "other", "none", "unknown")]
    assert {name[1]: call.result for name, call in (await find(file, *names)).items()} == {
        "7": b"7 \n" + PAYLOAD.content,
        "99": b"99 \n" + PAYLOAD.content,
        "other": b"o \nanother",
        "none": b"alone",
    }


async def test_more_names_than_one_statement_takes_are_found(file):
    names = [("s", f"{number}") for number in range(2 * TOGETHER + 3)]
    await store(file, *(sold(key) for _, key in names))
    assert list(await find(file, *names)) == names


async def test_a_result_that_an_earlier_version_kept_whole_is_read(file):
    kept = zlib.compress(b"as it was", 1)
    sql = "INSERT INTO idempotency(scope, key, request, call_id, outcome, expires_at) VALUES('s','k','r','call_1',?,?)"
    await file.alone(lambda db: db.execute(sql, (kept, NOW + 1)) and None)
    assert await find(file, ("s", "k")) == {("s", "k"): KeyedCall("r", "call_1", b"as it was")}


def test_rows_of_an_earlier_version_are_carried_over():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db, migrations()[:18])
        db.execute("INSERT INTO idempotency VALUES('s','k','r','call_1',?,?)", (zlib.compress(b"as it was"), NOW + 1))
        db.execute("INSERT INTO idempotency VALUES('s','l','r','call_2',NULL,?)", (NOW + 1,))
        migrate(db)
        assert find_keyed(db, [("s", "k"), ("s", "l")], NOW) == {
            ("s", "k"): KeyedCall("r", "call_1", b"as it was"),
            ("s", "l"): KeyedCall("r", "call_2", None),
        }


async def test_shared_bytes_live_longer_than_every_key_that_names_them(file):
    await store(file, sold("early"))
    await store(file, sold("late"), at=NOW + LONGER_MS + 1)
    at = NOW + KEEP_MS + LONGER_MS
    assert await file.alone(lambda db: sweep_shared(db, at, 10)) == 0
    found = await find(file, ("s", "early"), ("s", "late"), at=at)
    assert [name[1] for name in found] == ["late"]
    assert found["s", "late"].result.endswith(PAYLOAD.content)
    assert await read(file, "SELECT key FROM idempotency") == [("late",)]
    assert await file.alone(lambda db: sweep_shared(db, at + 2 * LONGER_MS, 10)) == 1


async def test_a_key_within_the_hour_does_not_prolong_what_is_shared(file):
    await store(file, sold("first"))
    await store(file, sold("second"), at=NOW + LONGER_MS)
    assert await read(file, "SELECT expires_at FROM shared_result") == [(NOW + KEEP_MS + LONGER_MS,)]


async def test_without_its_shared_bytes_a_call_is_one_to_be_made_again(file):
    await store(file, sold("k"))
    await file.alone(lambda db: db.execute("DELETE FROM shared_result") and None)
    assert await find(file, ("s", "k")) == {("s", "k"): KeyedCall("r", "call_k", None)}


async def test_a_key_that_is_stored_twice_is_refused_and_its_first_call_stays(file):
    await store(file, sold("k", b"first "))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store(file, sold("k", b"second "))
    assert (await find(file, ("s", "k")))["s", "k"].result == b"first \n" + PAYLOAD.content


async def begin(file, key="k"):
    """A call without a result, as it stands while it is made."""
    sql = f"INSERT INTO idempotency(scope, key, request, call_id, expires_at) VALUES('s','{key}','r','call_{key}',?)"
    await file.alone(lambda db: db.execute(sql, (NOW + KEEP_MS,)) and None)


async def keep(file, result, key="k"):
    return await file.alone(lambda db: keep_result(db, ("s", key), result, NOW))


async def test_of_two_results_of_one_call_the_first_is_kept_and_told_to_both(file):
    await begin(file)
    assert await keep(file, KeptResult(b"first ", PAYLOAD)) == b"first \n" + PAYLOAD.content
    assert await keep(file, KeptResult(b"second ", SharedBytes(b"other"))) == b"first \n" + PAYLOAD.content
    assert (await find(file, ("s", "k")))["s", "k"].result == b"first \n" + PAYLOAD.content


async def test_a_result_that_lost_what_it_shared_gives_way_to_a_new_one(file):
    await store(file, sold("k"))
    await file.alone(lambda db: db.execute("DELETE FROM shared_result") and None)
    assert await keep(file, KeptResult(b"new")) == b"new"
    assert (await find(file, ("s", "k")))["s", "k"].result == b"new"


async def test_a_receipt_that_is_not_found_by_the_call_is_kept_with_the_result(file):
    """The answer was made anew after a process had died that had signed a receipt for another one."""
    await begin(file)
    again = KeptResult(b"own\n", PAYLOAD, "header.payload.signature")
    assert await keep(file, again) == again.whole
    assert (await find(file, ("s", "k")))["s", "k"].result == b"own\nheader.payload.signature\n" + PAYLOAD.content


async def test_only_its_own_call_id_deletes_a_call_and_a_result_is_kept_only_for_a_call(file):
    await begin(file)
    await file.alone(lambda db: delete_keyed(db, ("s", "k"), "call_other"))
    await keep(file, KeptResult(b"new"))
    assert await keep(file, KeptResult(b"new"), "gone") is None
    assert await find(file, ("s", "k"), ("s", "gone")) == {("s", "k"): KeyedCall("r", "call_k", b"new")}
    await file.alone(lambda db: delete_keyed(db, ("s", "k"), "call_k"))
    assert await find(file, ("s", "k")) == {}


async def test_keys_are_told_apart_to_the_last_character(tmp_path):
    async with durable(tmp_path / "l.sqlite3") as file:
        await store(file, sold("a\0b"), sold("a"), sold("A"), sold("ä"))
        names = [("s", key) for key in ("a\0b", "a\0c", "a", "A", "ä")]
        assert {name[1]: call.call_id for name, call in (await find(file, *names)).items()} == {
            "a\0b": "call_a\0b",
            "a": "call_a",
            "A": "call_A",
            "ä": "call_ä",
        }


async def test_the_sweep_forgets_expired_keys_and_what_they_shared(file):
    clock = ManualClock(START)
    kept = SqlIdempotencyStore(file, clock)
    await kept.begin(("s", "k"), "r", "call_1")
    await kept.keep(("s", "k"), KeptResult(b"own ", PAYLOAD))
    clock.advance((KEEP_MS + LONGER_MS) / 1000 + 1)
    assert await kept.sweep() == 1
    for table in ("idempotency", "shared_result"):
        assert await read(file, f"SELECT * FROM {table}") == []


async def test_the_receipt_of_a_call_is_stored_once_and_comes_back_within_its_result(tmp_path):
    async with open_stand(tmp_path) as stand:
        call_id = new_call_id()
        keyed = KeyedCharge(KeyClaim(("s", "k"), "r"), lambda settled, receipt: KeptResult(b"own\n", PAYLOAD))
        _, receipt = await stand.buy(call_id, keyed=keyed)
        whole = b"own\n" + receipt.jws.encode() + b"\n" + PAYLOAD.content

        assert await find(stand.ledger.file, ("s", "k")) == {("s", "k"): KeyedCall("r", call_id, whole)}
        assert await read(stand.ledger.file, "SELECT own, shared FROM idempotency") == [(b"own\n", PAYLOAD.sha256)]


async def test_a_result_is_kept_in_its_parts_if_its_receipt_is_the_stored_one_and_else_whole(file):
    for key, receipt in (("a", ""), ("b", "of.another.answer")):
        await begin(file, key)
        await keep(file, KeptResult(b"own\n", PAYLOAD, receipt), key)

    assert await read(file, "SELECT key, own, shared FROM idempotency ORDER BY key") == [
        ("a", b"own\n", PAYLOAD.sha256),
        ("b", KeptResult(b"own\n", PAYLOAD, "of.another.answer").whole, None),
    ]


def test_a_key_is_kept_for_a_day_and_what_is_shared_for_an_hour_more():
    assert (KEEP_MS, LONGER_MS) == (86_400_000, 3_600_000)
