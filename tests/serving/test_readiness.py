"""An instance takes calls only while a write to its ledger reaches the disk, and to the file that it opened."""

from datetime import UTC, datetime

import anyio
import pytest

from toolserver.clock import ManualClock
from toolserver.serving.readiness import KEEP_S, Readiness
from toolserver.settings import Settings, StorageSettings
from toolserver.sql.sqlite import connect, durable

GOOD = {"running": True, "disk_space": True, "ledger_file": True, "ledger_write": True}


@pytest.fixture
async def file(tmp_path):
    async with durable(tmp_path / "x.sqlite3") as file:
        yield file


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 15, tzinfo=UTC))


def settings_of(folder, least_free_mb=0):
    return Settings(data_dir=folder, storage=StorageSettings(least_free_mb=least_free_mb))


def readiness(file, clock, *, least_free_mb=0, **more):
    return Readiness(file, settings_of(file.path.parent, least_free_mb), monotonic=clock.monotonic, **more)


async def test_a_service_whose_ledger_can_be_written_is_ready(file, clock):
    assert await readiness(file, clock).check() == GOOD


async def test_one_that_stores_nothing_has_nothing_to_check(tmp_path, clock):
    assert await Readiness(None, settings_of(tmp_path), monotonic=clock.monotonic).check() == {"running": True}


async def test_one_that_is_being_stopped_says_so_at_once(file, clock):
    stopping = []
    checked = readiness(file, clock, is_stopping=lambda: bool(stopping))
    assert await checked.check() == GOOD
    stopping.append(True)
    assert await checked.check() == GOOD | {"running": False}


async def test_a_disk_that_is_nearly_full_is_named(file, clock):
    assert await readiness(file, clock, least_free_mb=1e12).check() == GOOD | {"disk_space": False}


async def test_a_file_that_was_deleted_or_replaced_is_named_and_comes_back_when_it_does(file, clock, tmp_path):
    checked, aside = readiness(file, clock), tmp_path / "aside"
    file.path.rename(aside)
    lost = GOOD | {"ledger_file": False, "ledger_write": False}
    assert await checked.check() == lost
    aside.rename(file.path)
    clock.advance(KEEP_S)
    assert await checked.check() == GOOD


async def test_a_file_that_another_process_keeps_is_named_and_recovers(file, clock):
    await file.alone(lambda db: db.execute("PRAGMA busy_timeout=1") and None)
    checked, other = readiness(file, clock), connect(file.path)
    other.execute("BEGIN IMMEDIATE")
    assert await checked.check() == GOOD | {"ledger_write": False}
    other.close()
    clock.advance(KEEP_S)
    assert await checked.check() == GOOD


class Played:
    """A ledger's file in which only the write of a probe is played."""

    is_same_file = staticmethod(lambda: True)

    def __init__(self, file, probe):
        self.path, self.probe = file.path, probe


async def test_a_write_that_takes_too_long_is_none(file, clock):
    slow = Played(file, anyio.Event().wait)

    assert await readiness(slow, clock, probe_s=0.01).check() == GOOD | {"ledger_write": False}


async def test_however_many_ask_one_write_is_made_in_half_a_second(file, clock):
    written = []

    async def probe():
        written.append(True)

    checked = readiness(Played(file, probe), clock)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(checked.check)
    assert len(written) == 1
    clock.advance(KEEP_S)
    await checked.check()
    assert len(written) == 2


async def test_an_instance_answers_free_calls_whatever_it_lacks_and_says_what(file, clock):
    lost = dict.fromkeys(("ledger", "redis", "chain"), False)
    checked = readiness(
        file,
        clock,
        sells=lambda: not lost["ledger"],
        losses={part: lambda part=part: f"{part} is away" if lost[part] else None for part in ("redis", "chain")},
    )
    assert await checked.describe() == ({"ready": True, "checks": GOOD, "degraded": []}, True)
    assert await checked.describe_ledger() == ({"ledger": True, "checks": GOOD}, True)
    lost["redis"] = lost["chain"] = True
    assert (await checked.describe())[0]["degraded"] == ["redis", "chain"]
    assert (await checked.describe_ledger())[1]
    lost["ledger"] = True
    body, is_ready = await checked.describe()
    assert (is_ready, body["ready"], body["degraded"]) == (True, True, ["ledger", "redis", "chain"])
    assert await checked.describe_ledger() == ({"ledger": False, "checks": GOOD}, False)


@pytest.mark.parametrize(
    ("failing", "degraded"), [("disk_space", "disk"), ("ledger_file", "ledger"), ("ledger_write", "ledger")]
)
async def test_a_ledger_that_cannot_be_written_stops_paid_calls_and_not_free_ones(file, clock, failing, degraded):
    checked = readiness(file, clock)

    async def check():
        return GOOD | {failing: False}

    checked.check = check
    body, is_ready = await checked.describe()
    assert (is_ready, body["degraded"]) == (True, [degraded])
    body, sells = await checked.describe_ledger()
    assert (sells, body["ledger"], body["checks"][failing]) == (False, False, False)


async def test_an_instance_that_is_being_stopped_is_not_ready_and_sells_no_more(file, clock):
    checked = readiness(file, clock, is_stopping=lambda: True)
    body, is_ready = await checked.describe()
    assert (is_ready, body["ready"], body["degraded"]) == (False, False, [])
    assert not (await checked.describe_ledger())[1]


async def test_each_loss_says_to_the_operator_what_to_do(file, clock, tmp_path):
    checked = readiness(file, clock, least_free_mb=1e12, losses={"clock": lambda: "The clock is off."})
    losses = checked.list_losses(await checked.check())
    assert list(losses) == ["clock", "disk"]
    assert losses["disk"].endswith("Free some space.")
    assert str(file.path.parent) in losses["disk"]
    clock.advance(KEEP_S)
    file.path.rename(tmp_path / "aside")
    assert "moved or replaced" in checked.list_losses(await checked.check())["ledger"]
    away = readiness(file, clock, sells=lambda: False)
    assert "sister service" in away.list_losses({"running": True})["ledger"]
