"""A failing disk under a running server, and a server that is started on what is left of one."""

import httpx
import pytest

from tests.hostile.disk import try_fault
from tests.hostile.disks import FAULTS
from tests.live.processes import ran, started
from toolserver.money.ledger.store import FILE

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.mark.parametrize("fault", FAULTS)
def test_while_a_disk_fails_nothing_is_sold_and_afterwards_the_books_are_right(tmp_path, fault):
    row = try_fault(fault, tmp_path)
    row.print()
    assert row.problems == []


def test_a_service_is_not_started_on_keys_whose_ledger_is_gone(tmp_path):
    with started("serve", folder=tmp_path) as program:
        assert httpx.get(f"{program.url}/readyz").status_code == 200
    for left in (tmp_path / "data").glob(f"{FILE}*"):
        left.unlink()
    again = ran("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), folder=tmp_path)
    assert again.returncode != 0
    assert b"restore a backup" in again.stderr
    assert b"Traceback" not in again.stderr
    assert not (tmp_path / "data" / FILE).exists()


def test_a_refusal_while_stopping_leads_to_a_page(tmp_path):
    with started("serve", folder=tmp_path) as program:
        page = httpx.get(f"{program.url}/problems/shutting_down")
    assert page.status_code == 200
    assert "Retry-After" in page.text
