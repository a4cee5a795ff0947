"""With `database_url` all money is in one database that instances share, or nothing is opened at all."""

from types import SimpleNamespace

import pytest
from anyio import to_thread
from pydantic import SecretStr, ValidationError

from tests.calls.parts import START
from tests.calls.toy import REGISTRY
from tests.cli.test_purchases import run
from tests.money.ledger.ledgers import opened as opened_ledger
from tests.money.ledger.ledgers import token
from tests.money.purchases.wallet import XPUB
from tests.postgres import url_of
from toolserver.app import Service, ServiceParts
from toolserver.cli.books import books
from toolserver.cli.purchases import purchases
from toolserver.cli.receipts import receipts
from toolserver.cli.recover import _list_lost_addresses
from toolserver.cli.sweep import sweep_plan
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import PaymentRequired, ToolserverError
from toolserver.money.ledger.store import FILE
from toolserver.money.receipts.log import LogMark
from toolserver.money.receipts.transparency_log import begin_log
from toolserver.serving.money import keeps_books, open_money
from toolserver.serving.readiness import Readiness
from toolserver.serving.shared_database import START_S, NotOnServer, database_terms, find_marks, require_one_place
from toolserver.settings import LedgerSettings, PaymentSettings, ScalingSettings, Settings, StorageSettings
from toolserver.sql.high_water import HighWater

URL = SecretStr("postgresql://me:hunter2@db.example/money")


def settings(folder, **named):
    return Settings(data_dir=folder, **{"database_url": URL, **named})


def opened(folder, url, clock):
    """An instance with the keys that all of them have."""
    keys = ScalingSettings(keys_dir=folder.parent / "secret")
    shared = settings(folder, database_url=SecretStr(url), scaling=keys)
    return open_money(shared, clock=clock, base_url="https://data.example", service="data.example")


@pytest.mark.live
async def test_two_instances_sell_from_one_account(tmp_path):
    url, clock = url_of(tmp_path), ManualClock(START)
    async with opened(tmp_path / "a", url, clock) as one, opened(tmp_path / "b", url, clock) as two:
        await one.own.mint(token(1), 3, cause="bought")
        for turn, money in enumerate((one, two, one)):
            assert (await money.ledger.charge(f"call_{turn}", token(1), 1, endpoint="/api/pro/x")).charged == 1
        with pytest.raises(PaymentRequired):
            await two.ledger.charge("call_4", token(1), 1, endpoint="/api/pro/x")
        ready = Readiness(
            two.file, Settings(data_dir=tmp_path, storage=StorageSettings(least_free_mb=0)), monotonic=clock.monotonic
        )
        assert set((await ready.check()).values()) == {True}
    assert not (tmp_path / "a" / FILE).exists()


@pytest.mark.live
async def test_a_start_has_more_time_than_a_call_until_the_service_is_made(tmp_path):
    url, clock = url_of(tmp_path), ManualClock(START)
    async with opened(tmp_path / "a", url, clock) as money:
        assert money.file.patience_s == START_S
        parts = ServiceParts(registry=REGISTRY, clock=clock, money=money, background=False)
        async with Service.build(Settings(data_dir=tmp_path / "a"), parts) as service:
            assert service.money.file.patience_s == 0


def test_the_ledger_of_another_service_is_never_mixed_with_a_server(tmp_path):
    followed = LedgerSettings.model_construct(url="http://owner.test")
    with pytest.raises(NotOnServer, match=r"ledger\.url"):
        require_one_place(settings(tmp_path).model_copy(update={"ledger": followed}))


@pytest.mark.live
async def test_a_token_that_one_revokes_is_refused_by_all_within_a_second(tmp_path):
    url, clock = url_of(tmp_path), ManualClock(START)
    async with opened(tmp_path / "a", url, clock) as one, opened(tmp_path / "b", url, clock) as two:
        await one.own.mint(token(1), 3, cause="bought")
        assert await two.ledger.knows(token(1)), "which is remembered"
        await one.own.revoke(token_hash(token(1)).hex()[:16], "lost")
        clock.advance(1)
        assert not await two.ledger.knows(token(1))


@pytest.mark.live
async def test_a_log_that_one_begins_has_that_name_at_all_instances(tmp_path):
    url, clock = url_of(tmp_path), ManualClock(START)
    async with opened(tmp_path / "a", url, clock) as one:
        origin = one.evidence.log.origin
        signed = await one.evidence.log.checkpoint()
    marks = [find_marks(settings(tmp_path / name, database_url=SecretStr(url)), patient=True) for name in "ab"]
    await to_thread.run_sync(marks[0].raise_to, "address", 64)
    assert await to_thread.run_sync(begin_log, marks[0], LogMark(signed.size, signed.root)) == 2
    assert marks[1].read("address") == 64
    assert HighWater(tmp_path / "b").read_all() == {}, "it has never been there"
    async with opened(tmp_path / "b", url, clock) as two:
        assert two.evidence.log.origin == f"{origin}/2"


def test_without_a_database_the_marks_are_those_of_the_data_directory(tmp_path):
    HighWater(tmp_path).raise_to("address", 5)
    assert find_marks(Settings(data_dir=tmp_path)).read("address") == 5


class Asked(ToolserverError):
    """The marks were asked for."""


def ask(settings, *, patient):
    assert patient, "a command has time"
    raise Asked("for all of them")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (sweep_plan, ("--to", "0x" + "11" * 20)),
        (purchases, ("--unclaimed",)),
        (books, ("check", "--no-chain")),
        (receipts, ("begin-log", "--yes")),
    ],
)
async def test_commands_ask_for_the_marks_of_all_instances(tmp_path, monkeypatch, command, words):
    monkeypatch.setattr(f"{command.callback.__module__}.find_marks", ask)
    async with opened_ledger("sqlite", tmp_path, ManualClock(START)):
        pass
    done = await run(command, *words, "--data-dir", tmp_path, xpub=XPUB)
    assert (done.exit_code, done.stderr) == (1, "Error: for all of them\n")


async def test_who_looks_for_lost_addresses_asks_for_them_too(tmp_path, monkeypatch):
    monkeypatch.setattr("toolserver.cli.recover.find_marks", ask)
    async with opened_ledger("sqlite", tmp_path, ManualClock(START)) as ledger:
        payments = PaymentSettings(xpub=SecretStr(XPUB))
        with pytest.raises(Asked):
            await _list_lost_addresses(SimpleNamespace(settings=Settings(payments=payments), file=ledger.file))


def test_a_ledger_in_a_file_beside_it_is_no_second_truth(tmp_path):
    require_one_place(settings(tmp_path))
    (tmp_path / FILE).touch()
    with pytest.raises(NotOnServer, match="has a ledger"):
        require_one_place(settings(tmp_path))


def test_the_url_is_a_secret_and_the_terms_are_those_of_the_settings(tmp_path):
    given = settings(tmp_path, storage=StorageSettings(statement_cache=0))
    assert "hunter2" not in f"{given!r} {database_terms(given)!r}"
    assert (database_terms(given).url, database_terms(given).cached) == (URL.get_secret_value(), 0)
    assert keeps_books(given)
    with pytest.raises(ValidationError, match="postgresql://"):
        settings(tmp_path, database_url=SecretStr("mysql://db.example/money"))
