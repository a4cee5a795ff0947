import sqlite3
from contextlib import closing, contextmanager

import pytest

from tests.quick_files import migrate_copied
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.sql.migrate import migrate, migrations
from toolserver.webhooks import store
from toolserver.webhooks.records import WebhookSubscription
from toolserver.webhooks.store import WebhookTables

MANY = 100_000


@contextmanager
def filled(many):
    """A database with so many subscriptions, spread over the time ahead, and a tenth as many fires."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate_copied(database)
        database.execute("BEGIN")
        rows = (
            subscription(n, owner=f"{n // 5:064x}", due_at=NOW + 1 + n * 3, created_at=NOW - 300_000 + n * 3)
            for n in range(many)
        )
        database.executemany(store.ADD_SUBSCRIPTION, rows)
        fires = (fire(n, subscription=f"wh_{n:016x}", lane=n % 3, due_at=NOW + 1 + n)[:-1] for n in range(many // 10))
        database.executemany(store.ADD_FIRE, fires)
        database.execute("COMMIT")
        database.execute("ANALYZE")
        yield database


@pytest.fixture(scope="module")
def db():
    with filled(MANY) as database:
        yield database


@pytest.fixture
def small_db():
    with filled(100) as database:
        yield database


def plan(db, sql, *parameters):
    return "\n".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", parameters))


@pytest.mark.slow("a table of a hundred thousand rows")
def test_claims_stay_on_their_partial_indexes_with_a_hundred_thousand_subscriptions(db):
    claimed = plan(db, store.CLAIM_SUBSCRIPTIONS.format(f"IN ({store.DUE_SUBSCRIPTIONS})"), NOW, 500, 0)
    assert "INDEX webhook_subscription_due (<expr>=? AND due_at<?)" in claimed
    assert "SCAN" not in claimed
    assert "TEMP B-TREE" not in claimed
    fires = plan(db, store.CLAIM_FIRES.format(f"IN ({store.DUE_FIRES})"), NOW, 0, 64, NOW)
    assert "INDEX webhook_fire_due (lane=? AND due_at<?)" in fires
    assert "SCAN" not in fires.replace("SCAN CONSTANT ROW", "")


@pytest.mark.slow("a table of a hundred thousand rows")
def test_an_empty_look_and_the_log_stay_on_indexes_too(db):
    due = plan(db, store.NEXT_DUE)
    assert due.count("INDEX webhook_subscription_due (<expr>=?)") == 2
    assert due.count("INDEX webhook_fire_due (lane=?)") == 3
    trimmed = plan(db, store.TRIM_FIRES, "wh_1", 50)
    assert trimmed.count("INDEX webhook_fire_log (subscription=?") == 2
    assert "SCAN" not in trimmed
    assert "webhook_fire USING INDEX webhook_fire_due" in plan(db, store.FORGET_PAYLOADS, NOW), "the open ones"
    assert "INDEX webhook_fire_log (subscription=?)" in plan(db, store.ADD_FIRE, *fire()[:-1])


@pytest.mark.slow("a table of a hundred thousand rows")
def test_nothing_is_claimed_before_its_time_and_a_batch_is_no_larger_than_asked(db):
    tables = WebhookTables(db)
    db.execute("BEGIN")
    assert tables.claim_due(NOW, 500, failing=False) == []
    assert len(tables.claim_due(NOW + 150_000, 500, failing=False)) == 500
    assert len(tables.claim_fires(NOW + 5_000, 0, 64, NOW + 60_000)) == 64
    db.execute("ROLLBACK")


def test_a_database_of_before_keeps_its_log_in_order_and_its_owners():
    database, steps = sqlite3.connect(":memory:", isolation_level=None), migrations()
    before = [step.name for step in steps].index("webhook_log")
    migrate(database, steps[:before])
    old = [name for name in WebhookSubscription._fields if name not in ("payer", "event", "expires_at")]
    row = [getattr(subscription(1), name) for name in old]
    database.execute(f"INSERT INTO webhook_subscription({','.join(old)}) VALUES({','.join('?' * len(old))})", row)
    for number in (3, 1, 2):
        row = fire(number, state="charged")[:-2]
        database.execute(f"INSERT INTO webhook_fire VALUES({','.join('?' * len(row))})", row)
    migrate(database, steps)
    tables = WebhookTables(database)
    tables.add_fire(fire(0))
    assert [(f.id[-1], f.seq) for f in tables.list_fires(subscription(1).id, 9, None)] == [
        ("0", 4),
        ("3", 3),
        ("2", 2),
        ("1", 1),
    ]
    assert tables.list_paid_by(subscription(1).owner) == [subscription(1)]
    database.close()


def test_the_database_itself_keeps_what_is_over(small_db):
    db = small_db
    db.execute("BEGIN")
    db.execute("UPDATE webhook_subscription SET state='cancelled' WHERE id=?", (subscription(1).id,))
    with pytest.raises(sqlite3.IntegrityError, match="stays cancelled"):
        db.execute("UPDATE webhook_subscription SET state='active' WHERE id=?", (subscription(1).id,))
    db.execute("UPDATE webhook_fire SET state='charged' WHERE id=?", (fire(1).id,))
    with pytest.raises(sqlite3.IntegrityError, match="stays over"):
        db.execute("UPDATE webhook_fire SET state='open' WHERE id=?", (fire(1).id,))
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO webhook_fire SELECT * FROM webhook_fire WHERE id=?", (fire(2).id,))
    db.execute("ROLLBACK")
