"""`toolserver books close` and `prune`, and the proof of an archive on a machine that has nothing else."""

import json

import pytest

from tests.cli.test_ledger import run
from tests.money.books.months import sell_three_months
from toolserver.cli.books import books
from toolserver.cli.ledger import ledger
from toolserver.money.receipts.keys import RECEIPT_KEYS, read_keys


@pytest.fixture
async def folder(tmp_path, monkeypatch):
    """A data directory in which nothing was sold for months."""
    monkeypatch.setattr("time.time", lambda: 1_812_000_000.0)  # 2027-06-03
    await sell_three_months("sqlite", tmp_path)
    return tmp_path


async def test_months_are_closed_proved_elsewhere_and_pruned(folder, tmp_path_factory):
    done = await run(books, "close", "2027-02", "--data-dir", folder)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "2027-01  27 rows  used 14  owed 96  proved",
        "2027-02  18 rows  used 4  owed 97  proved",
    ]
    assert (await run(books, "close", "--json", "--data-dir", folder)).exit_code == 0

    away = tmp_path_factory.mktemp("away")
    archives = sorted((folder / "archive").iterdir())
    keys = away / "keys.json"
    keys.write_text(json.dumps({"keys": [key.jwk() for key in read_keys(folder / RECEIPT_KEYS)]}))
    given = [part for path in archives for part in ("--archive", path)]
    done = await run(ledger, "check", *given, "--keys", keys, "--json", "--data-dir", away)
    months = [one["month"] for one in json.loads(done.stdout)]
    assert (done.exit_code, months) == (0, [f"2027-0{number}" for number in range(1, 6)])

    done = await run(books, "prune", "--keep-months", "3", "--data-dir", folder)
    assert done.stdout.splitlines()[-1] == "removed  20 calls, 7 receipts, 2 uncharged"
    assert (await run(ledger, "check", "--data-dir", folder)).exit_code == 0
    done = await run(books, "check", "--no-chain", "--data-dir", folder)
    assert (done.exit_code, "months                5  ok" in done.stdout) == (0, True), done.stdout
    done = await run(books, "export", "--month", "2027-01", "--data-dir", folder)
    assert (done.exit_code, "were archived and removed" in done.output) == (1, True)


async def test_an_archive_that_was_changed_or_is_signed_by_others_is_not_proved(folder, tmp_path_factory):
    await run(books, "close", "2027-01", "--data-dir", folder)
    away = tmp_path_factory.mktemp("away")
    await sell_three_months("sqlite", away)
    (archive,) = (folder / "archive").iterdir()

    done = await run(ledger, "check", "--archive", archive, "--data-dir", away)
    assert (done.exit_code, "is not in the key set" in done.stdout) == (1, True)
    archive.write_bytes(archive.read_bytes()[:-30])
    done = await run(ledger, "check", "--archive", archive, "--data-dir", folder)
    assert (done.exit_code, "or is incomplete" in done.output) == (1, True)


async def test_the_settings_say_where_and_how_long(folder, monkeypatch):
    for months in ("", "2"):
        monkeypatch.setenv("TOOLSERVER_STORAGE__KEEP_MONTHS", months) if months else None
        assert (await run(books, "prune", "--data-dir", folder)).exit_code != 0
    monkeypatch.setenv("TOOLSERVER_STORAGE__KEEP_MONTHS", "3")
    monkeypatch.setenv("TOOLSERVER_STORAGE__ARCHIVE_DIR", str(folder / "elsewhere"))
    assert (await run(books, "close", "2027-01", "--data-dir", folder)).exit_code == 0
    assert [path.name for path in (folder / "elsewhere").iterdir()] == ["ledger-2027-01.jsonl.gz"]
    assert json.loads((await run(books, "prune", "--json", "--data-dir", folder)).stdout)["released"] == ["2027-01"]


@pytest.mark.parametrize("month", ["2027-13", "January", "2027-06"])
async def test_what_is_no_month_that_is_over_is_refused_with_a_sentence(folder, month):
    done = await run(books, "close", month, "--data-dir", folder)
    assert done.exit_code != 0
    assert "Traceback" not in done.output
    assert not (folder / "archive").exists() or not list((folder / "archive").iterdir())
