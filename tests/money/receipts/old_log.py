"""A data directory as it was before there were buckets: every uncharged call had a leaf of its own from the first."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tests.calls.parts import RICH, START
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, KeyRing
from toolserver.money.receipts.sign import Sale, compact, core_of, encode, signing_input
from toolserver.sql.migrate import migrate, migrations

BEFORE = 11  # migrations that were applied; there was no seal over rows yet
ORIGIN = "data.example/api/payment/no-charge-log"
DAY, TS, AT = "2027-01-15", "2027-01-15T08:00:00.000Z", int(START.timestamp() * 1000)


class OldLog(NamedTuple):
    """What was published of it: the receipts of its calls, its leaves and its signed state."""

    receipts: list[str]
    entries: list[bytes]
    root: bytes
    note: str


def make_old_log(folder: Path, count: int = 2) -> OldLog:
    """A log of so many calls, signed, with their receipts, in a folder that nobody has used."""
    (folder / "keys").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    key, log_key = (KeyRing(folder / name, ManualClock(START)).current() for name in (RECEIPT_KEYS, LOG_KEYS))
    receipts, entries, nodes = [], [], {}
    owner = token_hash(RICH).hex()
    with closing(sqlite3.connect(folder / FILE)) as db:
        migrate(db, migrations()[:BEFORE])
        for seq in range(count):
            sale = Sale(f"call_{seq:032x}", owner, "/api/pro/x", "GET /api/pro/x", 2, 0, 98, reason="5xx", status=500)
            core = core_of(sale, service="test", now=AT / 1000, log={"origin": ORIGIN, "index": seq})
            text, digest = encode(core), hashlib.sha256(encode(core)).hexdigest()
            signature = key.sign(signing_input(key.kid, text))
            db.execute(
                "INSERT INTO receipt(id, owner, core, key, signature, at) VALUES(?,?,?,?,?,?)",
                (core["id"], owner, text, key.kid, signature, AT),
            )
            leaf = {"seq": seq, "ts": TS, "reason": "5xx", "endpoint": "/api/pro/x", "credits": 2}
            entries.append(encode(leaf | {"receipt_sha256": digest}))
            for level, index, value in merkle.grow(lambda *place: nodes[place], seq, entries[-1]):
                nodes[level, index] = value
            db.execute("INSERT INTO no_charge(seq, day, entry, at) VALUES(?,?,?,?)", (seq, DAY, entries[-1], AT))
            receipts.append(compact(key.kid, text, signature))
        db.executemany("INSERT INTO log_node VALUES(?,?,?)", [(*place, value) for place, value in nodes.items()])
        db.execute("INSERT INTO no_charge_day VALUES(?,'5xx','/api/pro/x',?,?)", (DAY, count, 2 * count))
        root = merkle.root_of(entries)
        note = merkle.checkpoint(ORIGIN, count, root, log_key)
        db.execute("INSERT INTO log_checkpoint VALUES(1,?,?,?,?)", (count, root, note, AT))
        db.commit()
    (folder / FILE).chmod(0o600)
    return OldLog(receipts, entries, root, note)
