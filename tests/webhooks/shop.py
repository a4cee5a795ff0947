"""Subscriptions and fires for tests, and empty tables for them in memory."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from toolserver.sql.migrate import migrate
from toolserver.webhooks.records import WebhookFire, WebhookSubscription, next_slot
from toolserver.webhooks.store import WebhookTables

NOW = 1_800_000_000_000


@contextmanager
def empty_tables() -> Iterator[WebhookTables]:
    """The tables of webhooks, without a store around them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        yield WebhookTables(db)


def subscription(number=1, **changes):
    """A subscription of token number `owner`; its id is made of `number`."""
    created = changes.get("created_at", NOW)
    row = WebhookSubscription(
        id=f"wh_{number:016x}",
        owner=changes.get("owner", "a" * 64),
        payer=changes.get("payer", changes.get("owner", "a" * 64)),
        account="acct_a",
        endpoint="world-deltas",
        url="https://hooks.example/a",
        host="hooks.example",
        params=b"{}",
        sealed=b"sealed",
        created_at=created,
        due_at=next_slot(created, created),
    )
    return row._replace(**changes)


def fire(number=1, **changes):
    """An open fire of subscription 1."""
    row = WebhookFire(
        id=f"call_{number:032x}",
        subscription=f"wh_{1:016x}",
        kind="data",
        price=1,
        created_at=NOW,
        due_at=NOW,
        expires_at=NOW + 300_000,
        lane=1,
    )
    return row._replace(**changes)
