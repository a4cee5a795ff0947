"""What a tool may know about the running service."""

from tests.calls.parts import START
from toolserver import API_VERSION
from toolserver.clock import ManualClock
from toolserver.context.service_info import ServiceInfo


def test_the_age_of_the_service_is_counted_in_whole_seconds_from_its_making(tmp_path):
    clock = ManualClock(START)
    service = ServiceInfo(clock, tmp_path)
    assert (service.uptime_s, service.version) == (0, API_VERSION)
    clock.advance(90.9)
    assert service.uptime_s == 90


def test_storage_is_writable_where_the_data_directory_is(tmp_path):
    assert ServiceInfo(ManualClock(START), tmp_path).storage_writable()
    assert not ServiceInfo(ManualClock(START), tmp_path / "missing").storage_writable()


def test_a_service_that_was_begun_before_counts_from_then_and_is_otherwise_bare(tmp_path):
    clock = ManualClock(START)
    clock.advance(500)
    service = ServiceInfo(clock, tmp_path, started=clock.monotonic() - 30)
    assert service.uptime_s == 30
    assert (service.blocks, service.probe_targets, service.evidence, service.x402) == (5, {}, None, None)
    assert (service.allowances, service.webhooks) == (None, None)
