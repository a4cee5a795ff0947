"""`toolserver ledger` and `toolserver db`: what they print, how they end, and what they leave alone."""

import json
import sqlite3
from contextlib import closing
from functools import partial

import anyio.to_thread
import pytest
from click.testing import CliRunner

from tests.money.ledger.ledgers import token
from toolserver.cli.db import RowProgress, db
from toolserver.cli.ledger import ledger
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.sql.move_mark import MoveMark, write_move

RICH = token(1)


async def run(command, *words, given=None):
    """The command in a thread: it has an event loop of its own."""
    invoke = partial(CliRunner().invoke, command, [str(word) for word in words], input=given)
    return await anyio.to_thread.run_sync(invoke)


@pytest.fixture
async def fingerprint(tmp_path):
    """A ledger with a token of 10 credits, of which 3 are charged, 2 reserved, and 1 reserved and expired."""
    async with open_ledger(tmp_path / FILE) as books:
        await books.mint(RICH, 10, cause="rich")
        await books.charge("c1", RICH, 3, endpoint="/x")
        await books.reserve("c2", RICH, 2, endpoint="/y", ttl_s=60)
        await books.reserve("c3", RICH, 1, endpoint="/z", ttl_s=-1)
        return (await books.standing(RICH)).fingerprint


@pytest.fixture
def at(tmp_path):
    return "--data-dir", tmp_path


async def test_a_balance_is_printed_for_a_fingerprint_or_a_token_from_standard_input(at, fingerprint):
    named = await run(ledger, "balance", fingerprint, *at)
    given = await run(ledger, "balance", "-", *at, given=f"{RICH}\n")
    assert named.exit_code == given.exit_code == 0
    assert named.stdout == given.stdout
    assert "credits      4\nheld         3\n" in named.stdout
    assert RICH not in given.output


async def test_as_json_a_balance_is_one_object(at, fingerprint):
    found = json.loads((await run(ledger, "balance", fingerprint, "--json", *at)).stdout)
    assert (found["fingerprint"], found["credits"], found["held"], found["reason"]) == (fingerprint, 4, 3, None)


@pytest.mark.usefixtures("fingerprint")
async def test_a_grant_is_booked_with_its_reason_and_once_for_one_cause(at, fingerprint, tmp_path):
    words = ("grant", fingerprint, 50, "--reason", "paid and never confirmed", "--once", "0xab", "--json", *at)
    first = json.loads((await run(ledger, *words)).stdout)
    again = json.loads((await run(ledger, *words[:4], "other words", *words[5:])).stdout)
    more = await run(ledger, *words[:2], 51, *words[3:])
    assert (more.exit_code, "was credited before" in more.stderr) == (1, True)
    cause = "grant:0xab:paid and never confirmed"
    assert first == {"granted": 50, "remaining": 54, "cause": cause, "replayed": False}
    assert again == {**first, "replayed": True}
    async with open_ledger(tmp_path / FILE) as books:
        assert await books.balance(RICH) == 54
        page = await books.statement(RICH, StatementQuery())
        assert [(entry.kind, entry.credits) for entry in page.entries if entry.kind == "grant"] == [("grant", 50)]


@pytest.mark.usefixtures("fingerprint")
async def test_a_grant_to_somebody_new_makes_a_token_and_one_to_nobody_is_refused(at, tmp_path):
    made = json.loads((await run(ledger, "grant", "new", 5, "--reason", "lost purchase", "--json", *at)).stdout)
    async with open_ledger(tmp_path / FILE) as books:
        assert await books.balance(made["token"]) == 5
        assert await books.check() == []
    refused = await run(ledger, "grant", "0" * 16, 5, "--reason", "x", *at)
    assert (refused.exit_code, refused.stdout) == (1, "")


@pytest.mark.usefixtures("fingerprint")
async def test_rows_that_others_wrote_are_found_until_a_person_vouches_for_them(at, tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as db:
        db.execute("UPDATE token SET issued_at=0")
        ((hashed,),) = db.execute("SELECT hash FROM token").fetchall()
    rewritten = f"token {hashed[:25]} was changed"
    found = await run(ledger, "check", "--json", *at)
    breaches = json.loads(found.stdout)["breaches"]
    assert (found.exit_code, breaches) == (
        1,
        [{"rule": "every row was written by this service", "where": rewritten}],
    )
    asked = await run(ledger, "accept-rows", *at, given="n\n")
    assert (asked.exit_code, (await run(ledger, "check", *at)).exit_code) == (1, 1)
    accepted = await run(ledger, "accept-rows", "--yes", *at)
    assert accepted.stdout == f'accepted     ["{rewritten}"]\n'
    assert (await run(ledger, "check", *at)).exit_code == 0


@pytest.mark.usefixtures("fingerprint")
async def test_an_unknown_fingerprint_is_refused_in_a_sentence(at):
    done = await run(ledger, "balance", "0" * 16, *at)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("fingerprint")
async def test_holds_are_listed_and_swept(at):
    listed = await run(ledger, "holds", *at)
    assert [line.split("  ")[0] for line in listed.stdout.splitlines()] == ["c3", "c2", "2 open"]
    first = json.loads((await run(ledger, "holds", "--limit", 1, "--json", *at)).stdout)
    assert [hold["call_id"] for hold in first] == ["c3"]
    assert (await run(ledger, "sweep", *at)).stdout == "voided       1\n"
    assert (await run(ledger, "holds", *at)).stdout.endswith("1 open\n")


async def test_no_holds_are_said_to_be_none(tmp_path, at):
    async with open_ledger(tmp_path / FILE):
        pass
    assert (await run(ledger, "holds", *at)).stdout == "no credits are reserved\n"


@pytest.mark.usefixtures("fingerprint")
async def test_a_check_ends_with_1_when_a_rule_is_broken(tmp_path, at):
    good = await run(ledger, "check", *at)
    assert (good.exit_code, good.stdout.splitlines()[0]) == (0, "ok           true")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as file:
        file.execute("UPDATE account SET credits=credits+5 WHERE kind='token'")
    bad = await run(ledger, "check", "--json", *at)
    assert (bad.exit_code, json.loads(bad.stdout)["ok"]) == (1, False)


async def test_a_revocation_needs_a_reason_and_is_kept_with_it(at, fingerprint):
    assert (await run(ledger, "revoke", fingerprint, *at)).exit_code == 2
    assert (await run(ledger, "revoke", fingerprint, "--reason", "leaked", *at)).exit_code == 0
    found = json.loads((await run(ledger, "balance", fingerprint, "--json", *at)).stdout)
    assert (found["state"], found["reason"]) == ("expired", "leaked")


async def test_a_backup_can_be_restored(tmp_path, at, fingerprint):
    copy = tmp_path / "copy"
    done = json.loads((await run(db, "backup", "--to", copy, "--json", *at)).stdout)
    assert (done["backup"], done["bytes"]) == (str(copy), copy.stat().st_size)
    await run(ledger, "revoke", fingerprint, "--reason", "leaked", *at)
    restored = json.loads((await run(db, "restore", copy, "--json", *at)).stdout)
    assert restored["kept"] is not None
    assert json.loads((await run(ledger, "balance", fingerprint, "--json", *at)).stdout)["state"] == "valid"


@pytest.mark.usefixtures("fingerprint")
async def test_a_backup_never_replaces_a_file(tmp_path, at):
    (tmp_path / "copy").write_text("other")
    done = await run(db, "backup", "--to", tmp_path / "copy", *at)
    assert (done.exit_code, done.stderr) == (1, f"Error: {tmp_path / 'copy'} already exists\n")
    assert (tmp_path / "copy").read_text() == "other"


@pytest.mark.parametrize("words", [("balance", "x"), ("holds",), ("sweep",), ("check",)])
async def test_without_a_ledger_every_verb_says_so_and_makes_none(tmp_path, at, words):
    done = await run(ledger, *words, *at)
    assert (done.exit_code, done.stderr) == (1, f"Error: there is no ledger in {tmp_path}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("group", "words"), [(ledger, ("check",)), (db, ("backup",))])
async def test_a_file_that_is_no_database_is_refused_in_a_sentence(tmp_path, at, group, words):
    (tmp_path / FILE).write_text("nonsense, and more than a header's worth of it" * 10)
    done = await run(group, *words, *at)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert "not a database" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("fingerprint")
async def test_a_database_is_described_and_checked_row_by_row(at, tmp_path):
    done = await run(db, "check", "--json", *at)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["ok"], found["engine"], found["tables"]["reservation"]["rows"]) == (True, "SQLite", 3)
    with closing(sqlite3.connect(tmp_path / FILE)) as opened, opened:
        opened.execute("UPDATE account SET credits = 11 WHERE kind = 'token'")
    done = await run(db, "check", *at)
    assert done.exit_code == 1
    assert "every row was written by this service" in done.stdout


@pytest.mark.usefixtures("fingerprint")
async def test_a_move_needs_a_server_and_is_refused_with_a_sentence_where_it_cannot_be(at, tmp_path):
    done = await run(db, "move", *at)
    assert (done.exit_code, "--to is missing, and database_url is not set" in done.output) == (2, True)
    done = await run(db, "move", "--to", "mysql://db.example/x", *at)
    assert (done.exit_code, "must begin with postgresql://" in done.output) == (1, True)
    done = await run(db, "move", "--cancel", *at)
    assert (done.exit_code, f"no move of the ledger of {tmp_path} has begun" in done.output) == (1, True)


@pytest.mark.usefixtures("fingerprint")
async def test_while_a_ledger_is_moved_its_file_is_left_alone_and_a_move_can_be_cancelled(at, tmp_path, fingerprint):
    write_move(tmp_path, MoveMark.begin("postgresql://me:hunter2@db.example/money"))
    done = await run(ledger, "grant", fingerprint, 5, "--reason", "x", *at)
    assert (done.exit_code, "is being moved to postgresql://db.example/money" in done.output) == (1, True)
    done = await run(db, "move", "--cancel", "--json", *at)
    assert json.loads(done.stdout)["cancelled"] == "postgresql://db.example/money"
    assert (await run(ledger, "balance", fingerprint, *at)).exit_code == 0


def test_counts_are_said_by_what_was_done(capsys):
    progress = RowProgress(0)
    progress("copied", 10_000)
    progress("copied", 5_000)
    progress("compared", 7)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "10,000 rows copied after 0 s",
        "15,000 rows copied after 0 s",
        "15,000 rows copied, 7 rows compared after 0 s",
    ]


def test_nothing_is_said_twice_within_the_time(capsys):
    progress = RowProgress(3600)
    for _ in range(3):
        progress("copied", 1)
    assert capsys.readouterr().err == ""
