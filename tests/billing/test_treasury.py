"""Simulated credits and real ones never share a directory, whatever was started there first or died half way."""

import pytest

from tests.requirements import proves
from toolserver.billing.sqlite import FILE
from toolserver.clock import SystemClock
from toolserver.settings import Settings, Upstream
from toolserver.treasury import MARKER, OtherWorld, keep_apart, opened_treasury


def settings_of(folder, *, simulated):
    return Settings(data_dir=folder, upstream=Upstream(via="http://127.0.0.1:9" if simulated else None))


async def opened(settings):
    async with opened_treasury(settings, clock=SystemClock(), base_url="https://data.example", service="data.example"):
        pass


@proves("money.apart")
@pytest.mark.parametrize("simulated", [True, False])
async def test_simulated_and_real_money_never_share_a_directory(tmp_path, simulated):
    own, other = settings_of(tmp_path, simulated=simulated), settings_of(tmp_path, simulated=not simulated)
    await opened(own)
    await opened(own)
    before = (tmp_path / FILE).read_bytes()

    with pytest.raises(OtherWorld, match="data directory of its own"):
        await opened(other)

    assert (tmp_path / FILE).read_bytes() == before
    assert (tmp_path / MARKER).exists() is simulated


def test_a_simulation_that_died_before_its_books_were_made_has_claimed_the_directory(tmp_path):
    keep_apart(tmp_path / "new", simulated=True)

    with pytest.raises(OtherWorld, match="holds simulated credits"):
        keep_apart(tmp_path / "new", simulated=False)


def test_a_directory_that_holds_no_books_yet_is_free_to_either(tmp_path):
    keep_apart(tmp_path, simulated=False)
    keep_apart(tmp_path, simulated=True)

    assert (tmp_path / MARKER).stat().st_mode & 0o777 == 0o600
