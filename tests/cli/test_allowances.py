"""`toolserver allowances`: made, listed, changed and revoked for the token of a fingerprint."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.test_ledger import run
from tests.money.ledger.ledgers import token
from toolserver.cli.allowances import allowances
from toolserver.core.caller import token_hash
from toolserver.errors import RevokedToken
from toolserver.money.ledger.store import FILE, open_ledger

OWNER = token(1)
FINGERPRINT = token_hash(OWNER).hex()[:16]


@pytest.fixture
async def at(tmp_path):
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(OWNER, 10, cause="grant:1")
    return "--data-dir", tmp_path


async def test_an_allowance_is_made_changed_listed_and_revoked(at, tmp_path):
    end = f"{datetime.now(UTC) + timedelta(days=365):%Y-%m-%d}"
    terms = ("--per-day", 2, "--expires", end, "--tool", "premium_macro", "--json")
    (made,) = json.loads((await run(allowances, "create", FINGERPRINT, "robot", 5, *terms, *at)).stdout)
    assert re.fullmatch("svc_live_[0-9a-f]{64}", made["token"])
    assert (made["credits"], made["credits_per_day"], made["tools"]) == (5, 2, ["premium_macro"])
    assert made["expires_at"] == f"{end}T00:00:00Z"
    async with open_ledger(tmp_path / FILE) as ledger:
        assert await ledger.balance(made["token"]) == 2

    changed = await run(allowances, "update", FINGERPRINT, made["id"], "--per-day", 0, "--expires", "never", *at)
    assert changed.exit_code == 0
    listed = await run(allowances, "list", FINGERPRINT, *at)
    assert "credits_per_day" not in listed.stdout
    assert made["token"] not in listed.stdout
    assert f"id={made['id']}" in listed.stdout

    assert (await run(allowances, "revoke", FINGERPRINT, made["id"], *at)).exit_code == 0
    async with open_ledger(tmp_path / FILE) as ledger:
        with pytest.raises(RevokedToken):
            await ledger.balance(made["token"])


@pytest.mark.parametrize(
    "words",
    [
        ("list", "0" * 16),
        ("revoke", FINGERPRINT, "alw_0"),
        ("create", FINGERPRINT, "x", 1, "--tool", "nothing"),
        ("create", FINGERPRINT, "x", 1, "--expires", "soon"),
        ("create", FINGERPRINT, "x", 1, "--expires", "9999-12-31T23:59:59-23:59"),
        ("update", FINGERPRINT, "alw_0"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(at, words):
    done = await run(allowances, *words, *at)

    assert done.exit_code in (1, 2)
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr
