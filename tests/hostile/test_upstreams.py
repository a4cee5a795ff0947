"""Upstreams that lie about their size: a real process reads them all at once, in little memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.hostile.bombs import BODIES, BombServer, bombs
from tests.live.processes import UNLIMITED, Program, started
from tests.served import all_tools

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

MOST_MB = 300  # over idle, whatever the upstreams send
PATHS = [o.path for o in all_tools() if o.tier == "free" and o.sources]


@pytest.mark.parametrize("body", BODIES)
def test_a_bomb_on_every_source_at_once_takes_little_memory_and_gives_no_error(tmp_path, body):
    with bombs() as upstream, _limited(upstream, tmp_path) as program:
        assert httpx.get(f"{program.url}/api/health").status_code == 200
        idle_mb = program.resident_mb
        reset_peak(program)
        upstream.body = BODIES[body]()
        statuses = ask_all(program)
        assert set(statuses) == {200}
        assert len({path.split("/")[2] for path in upstream.hit}) >= 20, upstream.hit
        assert peak_mb(program) - idle_mb < MOST_MB, f"{peak_mb(program):.0f} over {idle_mb:.0f}"
        assert httpx.get(f"{program.url}/api/health").status_code == 200
        print(f"{body}: {idle_mb:.0f} MB idle, {peak_mb(program):.0f} MB at most, {len(upstream.hit)} addresses")


@contextmanager
def _limited(upstream: BombServer, folder: Path) -> Iterator[Program]:
    """A service on that upstream, in a process that may address 1.5 GB from now on."""
    settings = {"TOOLSERVER_UPSTREAM__VIA": upstream.url} | UNLIMITED
    with started("serve", "--server", "uvicorn", folder=folder, **settings) as program:
        program.limit_address_space()
        yield program


def ask_all(program: Program) -> list[int]:
    """Ask every free tool at once. Return the statuses."""
    statuses = []

    def ask(path: str) -> None:
        statuses.append(httpx.get(f"{program.url}{path}", timeout=60).status_code)

    threads = [threading.Thread(target=ask, args=(path,)) for path in PATHS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def reset_peak(program: Program) -> None:
    """Let the kernel measure the peak of the process's memory from now on."""
    Path(f"/proc/{program.process.pid}/clear_refs").write_text("5")


def peak_mb(program: Program) -> float:
    lines = Path(f"/proc/{program.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
