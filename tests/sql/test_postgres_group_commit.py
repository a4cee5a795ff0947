"""Group commit over a server: groups, refusals, connections lost at every moment, callers who never wait for long."""

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from tests.postgres import run_sql, terms_of
from tests.sql.test_group_commit import Refused, all_at_once
from tests.tcp_proxy import proxy_before
from toolserver.sql.errors import OutcomeUnknown, StorageClosed, StorageFailed, TransactionLost
from toolserver.sql.postgres_group_commit import START_TRIES, open_postgres

pytestmark = pytest.mark.live
HANG_S = 60.0  # a guard: who waits for a server that hangs waits for ever


def put(word):
    return lambda db: db.execute("INSERT INTO note VALUES(?)", (word,)).rowcount


def put_each(db, group):
    return [put(word)(db) for word in group]


def words(db):
    return [word for (word,) in db.execute("SELECT word FROM note ORDER BY word")]


@pytest.fixture
async def terms(tmp_path):
    terms = terms_of(tmp_path)
    async with open_postgres(terms):
        pass
    run_sql("CREATE TABLE note(word text CHECK (word <> 'forbidden'), UNIQUE (word))", terms.url)
    return terms


@pytest.fixture
async def store(terms):
    async with open_postgres(terms) as store:
        yield store


@pytest.fixture
async def proxied(terms):
    """A store whose connections lead through a proxy."""
    proxy, url = proxy_before(terms.url)
    try:
        async with open_postgres(replace(terms, url=url)) as store:
            yield store, proxy
            proxy.hangs.clear()
    finally:
        proxy.close()


@asynccontextmanager
async def impatient(terms):
    """The same with the deadlines of a served store."""
    proxy, url = proxy_before(terms.url)
    try:
        async with open_postgres(replace(terms, url=url, connect_s=0.8, work_s=0.8)) as store:
            yield store, proxy
            proxy.hangs.clear()
    finally:
        proxy.close()


def once(fate, statement):
    """The fate of the first piece that has this statement."""
    seen = Counter()

    def judge(sent):
        if statement not in sent:
            return "pass"
        seen[statement] += 1
        return fate if seen[statement] == 1 else "pass"

    return judge


async def test_those_who_ask_at_the_same_time_share_a_transaction_in_their_order(store):
    numbers = []

    def run(db, group):
        numbers.append(len(group))
        return put_each(db, group)

    await all_at_once(*(store.together(run, f"w{n:03}") for n in range(200)))
    assert numbers == [128, 72]
    assert await store.read(words) == [f"w{n:03}" for n in range(200)]


async def test_a_job_that_raises_leaves_nothing_and_spoils_nothing(store):
    def refuse(db):
        put("half")(db)
        raise Refused("no")

    outcomes = await all_at_once(
        store.alone(put("before")), store.alone(refuse), store.alone(put("forbidden")), store.alone(put("after"))
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["int", "Refused", "StorageFailed", "int"]
    assert await store.read(words) == ["after", "before"]


async def test_one_that_breaks_its_group_fails_alone(store):
    outcomes = await all_at_once(*(store.together(put_each, word) for word in ("a", "forbidden", "b")))
    assert [type(outcome).__name__ for outcome in outcomes] == ["int", "StorageFailed", "int"]
    assert await store.read(words) == ["a", "b"]


async def test_a_store_that_goes_on_after_an_error_as_if_nothing_had_happened_has_written_nothing(store):
    def swallow(db, group):
        for word in ("forbidden", *group):
            try:
                put(word)(db)
            except Exception:
                continue
        return [None] * len(group)

    with pytest.raises(StorageFailed):
        await store.together(swallow, "lost")
    assert await store.read(words) == []


async def test_what_others_made_impossible_is_run_again_as_a_whole(store):
    runs = []

    def run(db, group):
        outcomes = put_each(db, group)
        runs.append(len(group))
        if len(runs) < 3:
            raise TransactionLost("40001")
        return outcomes

    await all_at_once(*(store.together(run, word) for word in "abc"))
    assert runs == [3, 3, 3]
    assert await store.read(words) == ["a", "b", "c"]


async def test_what_others_always_make_impossible_fails_in_the_end(store):
    def lose(db, group):
        raise TransactionLost("40001")

    with pytest.raises(StorageFailed):
        await store.together(lose, "a")
    await store.alone(put("after"))


async def test_two_instances_that_lock_in_opposite_orders_both_get_through(terms):
    run_sql("INSERT INTO note VALUES('a'), ('b')", terms.url)

    def touch(first, second):
        def job(db):
            for word in (first, second):
                db.execute("UPDATE note SET word=word WHERE word=?", (word,))
                time.sleep(0.05)

        return job

    async with open_postgres(terms) as one, open_postgres(terms) as two:
        for _ in range(3):
            assert await all_at_once(one.alone(touch("a", "b")), two.alone(touch("b", "a"))) == [None, None]


async def test_a_connection_that_is_lost_within_a_transaction_costs_nobody_anything(proxied):
    store, proxy = proxied
    proxy.judge = once("cut", b"INSERT INTO note")
    await store.alone(put("a"))
    assert await store.read(words) == ["a"]


@pytest.mark.parametrize("fate", ["cut", "cut_after"])
async def test_a_connection_that_is_lost_at_commit_leaves_each_write_done_once(proxied, fate):
    store, proxy = proxied
    runs = []

    def run(db, group):
        runs.append(group)
        return put_each(db, group)

    proxy.judge = once(fate, b"COMMIT\0")
    assert await store.together(run, "a") == 1
    assert await store.read(words) == ["a"]
    assert len(runs) == (2 if fate == "cut" else 1)


@pytest.mark.parametrize("at", ["first", "second", "third"])
async def test_a_group_whose_connection_is_lost_between_two_statements_is_written_whole_or_not_at_all(store, at):
    lost = []

    def run(db):
        for word in ("first", "second", "third"):
            put(word)(db)
            if word == at and not lost:
                lost.append(word)
                db._raw.terminate()
                db._loop.run_until_complete(asyncio.sleep(0))
        return len(lost)

    assert await store.alone(run) == 1
    assert await store.read(words) == ["first", "second", "third"]


async def test_who_cannot_learn_whether_it_was_committed_is_told_so(terms):
    async with impatient(terms) as (store, proxy):
        proxy.judge = once("hang", b"COMMIT\0")
        with anyio.fail_after(HANG_S), pytest.raises(OutcomeUnknown):
            await store.alone(put("perhaps"))


async def test_while_the_server_hangs_everybody_gets_an_answer_and_afterwards_all_is_well(terms):
    async with impatient(terms) as (store, proxy):
        await store.alone(put("before"))
        proxy.hangs.set()
        with anyio.fail_after(HANG_S):
            outcomes = await all_at_once(store.alone(put("a")), store.read(words), store.read(words), store.probe())
        assert {type(outcome) for outcome in outcomes} <= {StorageFailed, OutcomeUnknown}
        assert proxy.hangs.is_set(), "they were answered while nothing came from the server"
        proxy.hangs.clear()
        proxy.cut_all()
        with anyio.fail_after(30):
            while True:
                try:
                    await store.alone(put("after"))
                    break
                except StorageFailed:
                    await anyio.sleep(0.05)
        assert set(await store.read(words)) >= {"before", "after"}


async def test_a_write_nobody_waits_for_is_done_when_the_server_is_back(terms):
    async with impatient(terms) as (store, proxy):
        proxy.hangs.set()
        store.soon(put_each, "soon")
        store.ride(put_each, "ride")
        with pytest.raises(StorageFailed):
            await store.alone(put("now"))
        proxy.hangs.clear()
        proxy.cut_all()
        with anyio.fail_after(30):
            found = []
            while not {"ride", "soon"} <= set(found):
                await anyio.sleep(0.05)
                try:
                    found = await store.read(words)
                except StorageFailed:
                    continue
        assert Counter(found).most_common(1)[0][1] == 1


async def test_a_slow_network_is_only_slow(proxied):
    store, proxy = proxied
    proxy.delay_s = 0.02
    await store.alone(put("a"))
    assert await store.read(words) == ["a"]


async def test_reads_find_a_new_connection_and_a_wrong_one_spoils_nothing(proxied):
    store, proxy = proxied
    assert await store.read(words) == []
    proxy.cut_all()
    assert await store.read(words) == []
    with pytest.raises(StorageFailed):
        await store.read(lambda db: db.execute("SELECT nonsense"))
    with pytest.raises(Refused):
        await store.read(lambda db: (_ for _ in ()).throw(Refused("no")))
    assert await store.read(words) == []


async def test_a_long_read_sees_one_moment_and_cannot_write(store):
    def look(db):
        before = words(db)
        store._loop.call_soon_threadsafe(store.soon, put_each, "meanwhile")
        for _ in range(100):
            time.sleep(0.02)
            if words(db) != before:
                return "changed"
        return "the same"

    assert await store.apart(look) == "the same"
    assert await store.read(words) == ["meanwhile"]
    with pytest.raises(StorageFailed):
        await store.apart(put("read only"))


async def test_a_probe_reaches_the_servers_disk(store):
    def position(db):
        return db.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()[0]

    before = await store.read(position)
    await store.probe()
    assert await store.read(position) != before


async def test_after_closing_everything_is_refused(terms):
    async with open_postgres(terms) as store:
        pass
    with pytest.raises(StorageClosed):
        await store.alone(put("late"))


@pytest.mark.parametrize(("cuts", "opens"), [(1, True), (START_TRIES - 1, True), (START_TRIES, False)])
async def test_a_start_whose_connection_is_lost_tries_again(tmp_path, cuts, opens):
    proxy, url = proxy_before(terms_of(tmp_path).url)
    seen = Counter()

    def judge(sent):
        if b"SET LOCAL lock_timeout" not in sent:  # within the transaction that makes the tables
            return "pass"
        seen["made"] += 1
        return "cut" if seen["made"] <= cuts else "pass"

    proxy.judge = judge
    try:
        if not opens:
            with pytest.raises(StorageFailed, match="cannot be opened"):
                async with open_postgres(replace(terms_of(tmp_path), url=url)):
                    pass
        else:
            async with open_postgres(replace(terms_of(tmp_path), url=url)) as store:
                await store.probe()
        assert seen["made"] == min(cuts + 1, START_TRIES)
    finally:
        proxy.close()


@pytest.mark.parametrize(("patience_s", "waits"), [(0.0, False), (HANG_S, True)])
async def test_what_is_done_while_a_service_starts_has_more_time_than_a_call(terms, patience_s, waits):
    async with impatient(terms) as (store, proxy):
        store.patience_s = patience_s
        proxy.hangs.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_go, proxy)
            if waits:
                assert await store.alone(put("late")) == 1
            else:
                with pytest.raises(StorageFailed):
                    await store.alone(put("late"))


async def let_go(proxy):
    """End a hang that is longer than the deadline of a call."""
    await anyio.sleep(2)
    proxy.hangs.clear()


async def test_a_server_that_is_not_there_or_refuses_is_named_at_the_start(terms):
    for url in ("postgresql://127.0.0.1:1/none", f"{terms.url.partition('?')[0]}_none"):
        with pytest.raises(StorageFailed, match="database_url"):
            async with open_postgres(replace(terms, url=url, connect_s=1.0)):
                raise AssertionError("it was opened")
