"""A collector of traces costs a service its traces at most: no call, no memory, and no end that comes too late."""

import re
from pathlib import Path

import httpx
import pytest

from tests.hostile.collectors import KINDS, PIECE, collecting_badly
from tests.live.processes import UNLIMITED, started
from toolserver.core.tracing import MOST_ANSWER, make_session

CALLS, LONG = 400, "x" * 6000  # a path nearly as long as a request's first line may be
MOST_MIB = 48  # by which the memory may grow: 2,048 spans, each with such a path as its name, would take 12 MiB alone


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
def test_calls_are_answered_memory_stays_and_the_end_does_not_wait_for_a_collector(tmp_path: Path, kind: str) -> None:
    with collecting_badly(kind) as collector, started("world", folder=tmp_path) as world:
        own = {
            **UNLIMITED,
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_TRACING__ENABLED": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_TIMEOUT": "3600",  # longer than anybody waits for the end of a process
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        with started("serve", folder=tmp_path, forked=False, **own) as server:
            with httpx.Client(base_url=server.url, timeout=30, trust_env=False) as client:
                statuses = [client.get("/api/forex").status_code for _ in range(20)]
                before = read_memory_mib(server.process.pid)
                statuses += [client.get("/api/forex").status_code for _ in range(CALLS)]
                missing = {client.get(f"/{LONG}/{number}").status_code for number in range(CALLS)}
                grown = read_memory_mib(server.process.pid) - before
            assert server.stop() == 0
        assert kind == "refusing" or collector.asked > 0
    assert set(statuses) == {200}
    assert missing == {404}
    assert grown < MOST_MIB
    assert "Traceback" not in server.said


def test_of_an_endless_answer_little_is_read_and_nothing_is_unpacked() -> None:
    with collecting_badly("endless") as collector, make_session() as session:
        answer = session.post(f"{collector.url}/v1/traces", data=b"spans", timeout=10)
        assert len(answer.content) == MOST_ANSWER
        assert set(answer.content) == set(PIECE)
    assert collector.written < 1000 * MOST_ANSWER  # what the sockets between the two hold


def read_memory_mib(pid: int) -> float:
    """The memory that a process has in use."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024
