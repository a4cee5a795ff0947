"""`python -m tests.hostile.soak [minutes] [server …]`: all hostile clients at once against a server, for long.

Meanwhile an honest client asks for all free answers, and pays for one now and then. What it waits for cached answers,
and the server's memory, descriptors and log are measured; a minute after the others have left all is as before. The
simulated world is a process of its own, so that what it takes is not counted as the server's.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.hostile.arguments import FREE
from tests.hostile.test_http import cpu_s
from tests.live.buying import bought
from tests.live.killing import selling
from tests.live.processes import ROOT, Program, environment, started

SERVERS = ("hypercorn", "uvicorn")
SETTINGS = {"TOOLSERVER_LIMITS__TRUSTED_PROXIES": '["127.0.0.1"]'}  # the honest client's, and no hostile one's
PACE_S, PAID_S, SAMPLE_S, NEW = 0.05, 15.0, 1.0, 4
MOST_MB, MOST_LOG, SLOWEST_S = 150, 10_000_000, 0.25
RECOVERS_S, SPARE_FILES, RISE = 60.0, 16, 1.1
MOST_WAITING = 0.25  # of the time, for a processor that others have
USD, SHOWN, EACH_S = 10, 10, 60


@dataclass
class Honest:
    """What the honest client got: answers by status, and the seconds that each cached answer took."""

    statuses: Counter[int] = field(default_factory=Counter)
    cached_s: list[float] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    paid: int = 0
    refused: list[str] = field(default_factory=list)

    @property
    def p99_s(self) -> float:
        """Of cached answers."""
        return sorted(self.cached_s)[int(len(self.cached_s) * 0.99)] if self.cached_s else 0.0


@dataclass
class Use:
    """What a process uses at a moment: megabytes, open descriptors, and bytes of log."""

    mb: float
    files: int
    log: int


def read_use(program: Program) -> Use:
    """Measure a process."""
    files = len(list(Path(f"/proc/{program.process.pid}/fd").iterdir()))
    return Use(program.resident_mb, files, program.log.stat().st_size)


def waited_s(program: Program) -> float:
    """Seconds that the main thread of a process could have run, and waited for a processor."""
    return int(Path(f"/proc/{program.process.pid}/schedstat").read_text().split()[1]) / 1e9


class HonestClient:
    """Asks for one free answer after the other, each time from another address, and for a paid one now and then."""

    def __init__(self, program: Program, token: str) -> None:
        self._client = httpx.AsyncClient(base_url=program.url, timeout=30, trust_env=False)
        self._token = {"Authorization": f"Bearer {token}"}
        self._turn = 0

    async def close(self) -> None:
        await self._client.aclose()

    async def finds_it_ready(self) -> bool:
        """Whether /readyz says so."""
        return (await self._client.get("/readyz")).status_code == 200

    async def ask(self, honest: Honest, seconds: float) -> None:
        """Ask for so long."""
        ends, pays = time.monotonic() + seconds, 0.0
        while (now := time.monotonic()) < ends:
            self._turn += 1
            path = FREE[self._turn % len(FREE)].path
            headers = {"X-Forwarded-For": f"10.{self._turn >> 16}.{self._turn >> 8 & 255}.{self._turn & 255}"}
            if self._turn % NEW == 0:
                headers["Connection"] = "close"  # the next call needs a new connection
            if now >= pays:
                path, headers, pays = "/api/pro/briefing", headers | self._token, now + PAID_S
            await self._ask_once(honest, path, headers)
            await asyncio.sleep(PACE_S)

    async def _ask_once(self, honest: Honest, path: str, headers: dict[str, str]) -> None:
        began = time.monotonic()
        try:
            answer = await self._client.get(path, headers=headers)
        except httpx.TransportError as error:
            honest.lost[type(error).__name__] += 1
            return
        honest.statuses[answer.status_code] += 1
        if answer.status_code != 200 and len(honest.refused) < SHOWN:
            took_s = time.monotonic() - began
            honest.refused.append(f"{path} -> {answer.status_code} in {took_s:.1f} s: {answer.text[:400]}")
        honest.paid += "x-service-receipt-id" in answer.headers
        if "hit" in answer.headers.get("cache-status", ""):
            honest.cached_s.append(time.monotonic() - began)


@dataclass
class Soak:
    """One run against one server: before, during and after."""

    server: str
    before: Use
    before_p99_s: float
    uses: list[Use] = field(default_factory=list)
    honest: Honest = field(default_factory=Honest)
    strangers: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0
    server_share: float = 0
    waited_share: float = 0
    recovered_s: float | None = None
    after: Use | None = None
    after_p99_s: float = 0

    @property
    def share(self) -> float:
        """The part of a core that the strangers took."""
        return float(self.strangers["cpu_s"]) / self.seconds

    @property
    def is_starved(self) -> bool:
        """Whether others on the machine kept the server from its processor: then times say nothing about the server."""
        return self.waited_share > MOST_WAITING

    @property
    def slow(self) -> list[str]:
        """What took too long, where times say something: the command judges it, and no test does."""
        found = {
            f"honest p99 {self.honest.p99_s * 1000:.0f} ms": self.honest.p99_s > SLOWEST_S,
            f"p99 afterwards {self.after_p99_s * 1000:.0f} ms": self.after_p99_s > SLOWEST_S,
        }
        return [what for what, is_so in found.items() if is_so and not self.is_starved]

    @property
    def wrong(self) -> list[str]:
        """What must not be, on a machine of whatever speed."""
        part = max(1, len(self.uses) // 3)
        early, late = max(u.files for u in self.uses[: 2 * part]), max(u.files for u in self.uses[-part:])
        refused = {int(status) for status in self.strangers.get("statuses", {})} | set(self.honest.statuses)
        found = {
            f"statuses {sorted(refused)}": any(status >= 500 for status in refused),
            f"an honest call refused: {dict(self.honest.statuses)}": set(self.honest.statuses) != {200},
            f"an honest call lost: {dict(self.honest.lost)}": bool(self.honest.lost),
            "nothing could be bought": not self.honest.paid,
            f"{max(u.mb for u in self.uses):.0f} MB": max(u.mb for u in self.uses) > self.before.mb + MOST_MB,
            f"descriptors rise: {early}, {late}": late > early * RISE + SPARE_FILES,
            f"{self.uses[-1].log:,} bytes of log": self.uses[-1].log > MOST_LOG,
            "not as before within a minute": self.recovered_s is None,
        }
        return [what for what, is_so in found.items() if is_so]

    def print(self) -> None:
        """The figures."""
        honest, last = self.honest, self.after or self.uses[-1]
        print(
            f"{self.server}: {self.seconds:.0f} s; of a core the strangers took {self.share:.2f},"
            f" the server {self.server_share:.2f}, which waited for a processor {self.waited_share:.0%} of the time"
            f"{': too busy a machine, times are not judged' if self.is_starved else ''}"
        )
        print(f"  strangers did {self.strangers.get('acted')}")
        print(f"  and were answered {self.strangers.get('statuses')}")
        print(
            f"  honest: {honest.statuses.total()} calls {dict(honest.statuses)}, {honest.paid} paid, lost"
            f" {dict(honest.lost) or 'none'}; cached p99 {honest.p99_s * 1000:.0f} ms of {len(honest.cached_s)}"
            f" (before {self.before_p99_s * 1000:.0f} ms, after {self.after_p99_s * 1000:.0f} ms)"
        )
        print(
            f"  memory {self.before.mb:.0f} MB before, {max(u.mb for u in self.uses):.0f} at most, {last.mb:.0f} after;"
            f" descriptors {self.before.files}, {max(u.files for u in self.uses)}, {last.files}; log"
            f" {last.log - self.before.log:,} bytes; as before after {self.recovered_s} s"
        )
        print(f"  megabytes every {EACH_S} s: {' '.join(f'{u.mb:.0f}' for u in self.uses[:: int(EACH_S / SAMPLE_S)])}")
        print(f"  load average {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
        for example in honest.refused:
            print(f"  honest: {example}")
        print(f"  wrong: {'; '.join([*self.wrong, *self.slow]) or 'nothing'}", flush=True)


@contextmanager
def strangers(program: Program, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """The hostile clients, in a process of their own that ends by itself."""
    host, port = program.address
    words = [sys.executable, "-m", "tests.hostile.soak_clients", host, str(port), str(seconds)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment({}), cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        yield process
    finally:
        process.kill()
        process.wait()


async def soak(program: Program, token: str, server: str, seconds: float) -> Soak:
    """Warm up, let the strangers come, and see whether all is as before when they are gone."""
    client, calm = HonestClient(program, token), Honest()
    try:
        before_s = min(20.0, seconds / 3)
        await client.ask(Honest(), before_s)
        await client.ask(calm, before_s)
        run = Soak(server, read_use(program), calm.p99_s)
        await _endure(program, client, run, seconds)
        await _recover(program, client, run)
    finally:
        await client.close()
    return run


async def _endure(program: Program, client: HonestClient, run: Soak, seconds: float) -> None:
    used, waited = cpu_s(program.process.pid), waited_s(program)
    with strangers(program, seconds) as process:
        asking = asyncio.create_task(client.ask(run.honest, seconds))
        while not asking.done():
            run.uses.append(read_use(program))
            await asyncio.sleep(SAMPLE_S)
        await asking
        run.server_share = (cpu_s(program.process.pid) - used) / seconds
        run.waited_share = (waited_s(program) - waited) / seconds
        said, _ = await asyncio.to_thread(process.communicate, timeout=60)
    run.seconds, run.strangers = seconds, json.loads(said)
    for example in run.strangers["bad"]:
        print(example, flush=True)


async def _recover(program: Program, client: HonestClient, run: Soak) -> None:
    """Wait until descriptors and answers are as before, for a minute at most."""
    began = time.monotonic()
    while time.monotonic() - began < RECOVERS_S:
        later = Honest()
        await client.ask(later, 4.0)
        run.after, run.after_p99_s = read_use(program), later.p99_s
        is_flat = run.after.files <= run.before.files + SPARE_FILES
        is_small = run.after.mb <= run.before.mb + MOST_MB
        is_well = set(later.statuses) == {200} and not later.lost
        if is_flat and is_small and is_well and await client.finds_it_ready():
            run.recovered_s = round(time.monotonic() - began)
            return


@contextmanager
def served(server: str, folder: Path, module: str = "toolserver") -> Iterator[tuple[Program, str]]:
    """A server of our own on a world of its own, and a token with credits for all of a run."""
    with started("world", folder=folder) as world:
        settings = SETTINGS | selling(world.url) | {"TOOLSERVER_UPSTREAM__VIA": world.url}
        with started("serve", "--server", server, folder=folder, module=module, **settings) as program:
            yield program, bought(program, world.url, USD)


def soak_server(server: str, seconds: float, folder: Path) -> Soak:
    """Start a server for the run, and print its figures while it is still there: on a busy machine it ends late."""
    with served(server, folder) as (program, token):
        run = asyncio.run(soak(program, token, server, seconds))
        run.print()
    return run


def main(minutes: float, servers: tuple[str, ...]) -> int:
    """Run against each server and print the figures; 0 when nothing is wrong and times could be judged."""
    wrong = 0
    for server in servers:
        with tempfile.TemporaryDirectory() as folder:
            run = soak_server(server, minutes * 60, Path(folder))
        wrong += bool(run.wrong or run.slow) or run.is_starved
    return wrong


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(float(given[0]) if given else 30.0, tuple(given[1:]) or SERVERS))
