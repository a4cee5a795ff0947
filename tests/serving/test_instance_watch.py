"""What one instance measures of itself, read from the metrics of a real service."""

from tests.calls.parts import START
from tests.calls.toy import REGISTRY
from toolserver.app import Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.settings import Settings


def values(text: str) -> dict[str, float]:
    rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


async def test_a_service_measures_its_parts_its_disk_and_what_waits(tmp_path):
    parts = ServiceParts(registry=REGISTRY, clock=ManualClock(START), background=False)
    async with Service.build(Settings(data_dir=tmp_path), parts) as service:
        service.readiness._losses = {"chain": lambda: "No RPC server answers.", "redis": lambda: None}
        await service.watch.measure()
        found = values(service.metrics.text().decode())
    assert found['toolserver_degraded{part="chain"}'] == 1
    assert found['toolserver_degraded{part="redis"}'] == found['toolserver_degraded{part="ledger"}'] == 0
    assert found["toolserver_clock_skew_seconds"] == found["toolserver_webhooks_late_seconds"] == 0
    assert sum(name.startswith("toolserver_build_info{") for name in found) == 1
    assert 0 < found["toolserver_disk_free_bytes"] <= found["toolserver_disk_bytes"]
    assert found["process_open_fds"] > 0
