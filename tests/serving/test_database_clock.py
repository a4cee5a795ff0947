"""The machine's clock is compared with the database's, and money is dated by the latter where they are far apart."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.money.ledger.ledgers import opened_file
from toolserver.clock import ClockSkew, ManualClock, SteeredClock
from toolserver.serving.money import UNSURE_S, compare_clocks
from toolserver.sql.errors import StorageFailed


async def test_a_file_has_no_clock_of_its_own(tmp_path):
    skew = ClockSkew()
    async with opened_file("sqlite", tmp_path) as file:
        await compare_clocks(file, ManualClock(datetime(2000, 1, 1, tzinfo=UTC)), skew)
    assert skew.seconds == 0


@pytest.mark.live
@pytest.mark.parametrize("off_s", [-3600, 0, 90])
async def test_how_far_a_machine_is_off_is_measured_and_its_time_corrected(tmp_path, off_s):
    machine, skew = ManualClock(datetime.now(UTC) + timedelta(seconds=off_s)), ClockSkew()
    async with opened_file("postgres", tmp_path) as file:
        await compare_clocks(file, machine, skew)
    assert skew.is_off is bool(off_s)
    assert abs(skew.seconds + off_s) < 60  # a loaded machine may take a while between the two readings
    assert abs(SteeredClock(machine, skew).time() - time.time()) < 60 or not skew.is_off


class Away:
    """A database that fails, or that takes long to answer."""

    shared = True

    def __init__(self, clock, takes_s):
        self.clock, self.takes_s = clock, takes_s

    async def read(self, job):
        if self.takes_s is None:
            raise StorageFailed("it is away")
        self.clock.advance(self.takes_s)
        return int(self.clock.time() * 1000) + 60_000


@pytest.mark.parametrize(("takes_s", "seconds"), [(None, 7.0), (UNSURE_S * 2, 7.0), (0.5, 60.25)])
async def test_without_an_answer_in_time_the_last_measurement_counts(takes_s, seconds):
    machine, skew = ManualClock(datetime(2027, 1, 15, tzinfo=UTC)), ClockSkew()
    skew.seconds = 7.0
    await compare_clocks(Away(machine, takes_s), machine, skew)
    assert skew.seconds == seconds
