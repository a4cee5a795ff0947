"""`python -m tests.hostile.soak --server uvicorn --proxy caddy --seconds 1200`: all hostile clients at once, for long.

Without `--server` or `--proxy` it runs each. With `--alone` each kind of them comes alone, or one that it names. The
service has 1,024 descriptors (`--descriptors`), and the strangers more connections than
that: of one address, of one /48 and of 500 addresses. Where it may, it runs in a network of its own,
which has that /48.

Meanwhile honest clients ask for all free answers, pay for one now and then, and sign in. What they wait for cached
answers, and the server's memory, descriptors and log are measured; a minute after the others have left all is as
before. The simulated world is a process of its own, so that what it takes is not counted as the server's.
"""

import argparse
import asyncio
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.proxies import TRUSTED, Proxy, proxied
from tests.hostile.arguments import FREE
from tests.hostile.fronts import DIRECT, add_front_flags, list_fronts
from tests.hostile.sign_ins import Visitors, Wrong, sign_in
from tests.hostile.soak_clients import KINDS, NETWORK
from tests.hostile.test_http import cpu_s
from tests.hostile.unfinished import Target
from tests.live.buying import bought
from tests.live.killing import selling
from tests.live.processes import ROOT, Program, environment, started

PEOPLE = [f"127.3.0.{n}" for n in range(1, 61)]  # honest: each calls every three seconds, and each time another tool
PACE_S, PAID_S, SIGN_IN_S, SAMPLE_S, NEW = 0.05, 15.0, 5.0, 1.0, 4
DESCRIPTORS, LONG_S, CALM_S = 1024, 1200.0, 20.0
MOST_MB, MOST_LOG = 150, 10_000_000
SLOWEST_S, SLOWEST_PROXIED_S, SLOWEST_SIGN_IN_S = 0.25, 0.4, 3.0
RECOVERS_S, SPARE_FILES, RISE = 60.0, 16, 1.1
MOST_WAITING = 0.25  # of the time, for a processor that others have
USD, SHOWN, EACH_S = 10, 10, 60


@dataclass
class Honest:
    """What honest clients got: answers by status, sign-ins by how they ended, and the seconds of both."""

    statuses: Counter[int] = field(default_factory=Counter)
    cached_s: list[float] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    paid: int = 0
    refused: list[str] = field(default_factory=list)
    sign_ins: Counter[str] = field(default_factory=Counter)
    sign_ins_s: list[float] = field(default_factory=list)

    @property
    def p99_s(self) -> float:
        """Of cached answers."""
        return sorted(self.cached_s)[int(len(self.cached_s) * 0.99)] if self.cached_s else 0.0

    @property
    def not_signed_in(self) -> dict[str, int]:
        return {word: count for word, count in self.sign_ins.items() if word != "answered"}


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


class HonestClients:
    """People at many addresses, of whom one asks for an answer at a time, pays now and then, and signs in."""

    def __init__(self, program: Program, proxy: Proxy | None, token: str) -> None:
        port, verify = (proxy.port, proxy.authority) if proxy else (program.address[1], True)
        url, host = f"{'https' if proxy else 'http'}://127.0.0.1:{port}", f"localhost:{port}"
        self._clients = [
            httpx.AsyncClient(
                base_url=url,
                headers={"Host": host},
                timeout=30,
                transport=httpx.AsyncHTTPTransport(verify=verify, local_address=address),
            )
            for address in PEOPLE
        ]
        self._visitors = Visitors(Target(program, proxy), is_proxied=True)  # its own addresses say who it is
        self._token = {"Authorization": f"Bearer {token}"}
        self._turn = self._visit = 0

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()

    async def finds_it_ready(self) -> bool:
        """Whether /readyz says so."""
        return (await self._get(0, "/readyz", {})).status_code == 200

    async def ask(self, honest: Honest, seconds: float) -> None:
        """Ask for so long."""
        ends, pays = time.monotonic() + seconds, 0.0
        signing_in = asyncio.create_task(self._sign_in(honest, ends))
        while (now := time.monotonic()) < ends:
            self._turn += 1
            path, headers = FREE[self._turn // len(PEOPLE) % len(FREE)].path, dict[str, str]()
            if self._turn % NEW == 0:
                headers["Connection"] = "close"  # the next call needs a new connection
            if now >= pays:
                path, headers, pays = "/api/pro/briefing", headers | self._token, now + PAID_S
            await self._ask_once(honest, path, headers)
            await asyncio.sleep(PACE_S)
        await signing_in

    async def _ask_once(self, honest: Honest, path: str, headers: dict[str, str]) -> None:
        began = time.monotonic()
        try:
            answer = await self._get(self._turn, path, headers)
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

    async def _get(self, turn: int, path: str, headers: dict[str, str]) -> httpx.Response:
        known = {"sni_hostname": "localhost"}
        return await self._clients[turn % len(PEOPLE)].get(path, headers=headers, extensions=known)

    async def _sign_in(self, honest: Honest, ends: float) -> None:
        """Sign in again and again, each time from another address."""
        while (began := time.monotonic()) < ends:
            self._visit += 1
            try:
                honest.sign_ins_s.append(await sign_in(self._visitors, PEOPLE[self._visit % len(PEOPLE)], None))
                honest.sign_ins["answered"] += 1
            except Wrong as wrong:
                honest.sign_ins[str(wrong)] += 1
            except (OSError, TimeoutError) as failure:
                honest.sign_ins[type(failure).__name__] += 1
            await asyncio.sleep(min(SIGN_IN_S, max(0.0, ends - began)))


@dataclass
class Soak:
    """One run against one server, direct or behind a proxy: before, during and after."""

    server: str
    proxy: str
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
    def ratio(self) -> float:
        """How many times longer than before honest clients waited for cached answers, at the 99th percentile."""
        return self.honest.p99_s / self.before_p99_s if self.before_p99_s else 0.0

    @property
    def slow(self) -> list[str]:
        """What took too long, where times say something: the command judges it, and no test does."""
        most_s = SLOWEST_S if self.proxy == DIRECT else SLOWEST_PROXIED_S
        slowest_s = max(self.honest.sign_ins_s, default=0.0)
        found = {
            f"honest p99 {self.honest.p99_s * 1000:.0f} ms": self.honest.p99_s > most_s,
            f"p99 afterwards {self.after_p99_s * 1000:.0f} ms": self.after_p99_s > most_s,
            f"a sign-in took {slowest_s:.1f} s": slowest_s > SLOWEST_SIGN_IN_S,
        }
        return [what for what, is_so in found.items() if is_so and not self.is_starved]

    @property
    def wrong(self) -> list[str]:
        """What must not be, on a machine of whatever speed."""
        part = max(1, len(self.uses) // 3)
        early, late = max(u.files for u in self.uses[: 2 * part]), max(u.files for u in self.uses[-part:])
        found = {
            f"strangers saw it fail: {self.strangers.get('bad')}": bool(self.strangers.get("bad")),
            f"an honest sign-in refused: {self.honest.not_signed_in}": bool(self.honest.not_signed_in),
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
            f"{self.server} behind {self.proxy}: {self.seconds:.0f} s; of a core the strangers took {self.share:.2f},"
            f" the server {self.server_share:.2f}, which waited for a processor {self.waited_share:.0%} of the time"
            f"{': too busy a machine, times are not judged' if self.is_starved else ''}"
        )
        print(f"  strangers did {self.strangers.get('acted')}")
        print(
            f"  held up to {self.strangers.get('most_open')} connections, and were answered"
            f" {self.strangers.get('statuses')}"
        )
        print(
            f"  honest: {honest.statuses.total()} calls {dict(honest.statuses)}, {honest.paid} paid, lost"
            f" {dict(honest.lost) or 'none'}; cached p99 {honest.p99_s * 1000:.0f} ms of {len(honest.cached_s)}"
            f" (before {self.before_p99_s * 1000:.0f} ms, {self.ratio:.1f} times that, after"
            f" {self.after_p99_s * 1000:.0f} ms)"
        )
        print(
            f"  sign-ins: {honest.sign_ins['answered']} of {honest.sign_ins.total()} answered, at most"
            f" {max(honest.sign_ins_s, default=0.0):.2f} s; others {honest.not_signed_in or 'none'}"
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

    def describe(self) -> dict[str, Any]:
        """Return what a test judges, as JSON."""
        names = ("wrong", "ratio", "is_starved", "waited_share")
        found = {name: getattr(self, name) for name in names}
        return found | {"asked": self.honest.statuses.total(), "strangers": self.strangers}


@contextmanager
def strangers(scene: "Scene", seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """The hostile clients, in a process of their own that ends by itself."""
    port = scene.proxy.port if scene.proxy else scene.program.address[1]
    words = [sys.executable, "-m", "tests.hostile.soak_clients", str(port), str(seconds)]
    words += ["--authority", str(scene.folder / "ca.pem")] if scene.proxy else []
    words += ["--alone", scene.alone] if scene.alone else []
    words += ["--network"] if has_network() else []
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment({}), cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        yield process
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Scene:
    """A service, what is in front of it, a token with credits for a run, and the only kind of strangers, if any."""

    server: str
    proxy_name: str
    program: Program
    proxy: Proxy | None
    token: str
    folder: Path
    alone: str | None = None


async def soak(scene: Scene, seconds: float) -> Soak:
    """Warm up, let the strangers come, and see whether all is as before when they are gone."""
    clients, calm = HonestClients(scene.program, scene.proxy, scene.token), Honest()
    try:
        before_s = min(CALM_S, seconds)
        await clients.ask(Honest(), before_s)
        await clients.ask(calm, before_s)
        run = Soak(scene.server, scene.proxy_name, read_use(scene.program), calm.p99_s)
        await _endure(scene, clients, run, seconds)
        await _recover(scene.program, clients, run)
    finally:
        await clients.close()
    return run


async def _endure(scene: Scene, clients: HonestClients, run: Soak, seconds: float) -> None:
    program = scene.program
    used, waited = cpu_s(program.process.pid), waited_s(program)
    with strangers(scene, seconds) as process:
        asking = asyncio.create_task(clients.ask(run.honest, seconds))
        while not asking.done():
            run.uses.append(read_use(program))
            await asyncio.sleep(SAMPLE_S)
        await asking
        run.server_share = (cpu_s(program.process.pid) - used) / seconds
        run.waited_share = (waited_s(program) - waited) / seconds
        said, _ = await asyncio.to_thread(process.communicate, timeout=90)
    run.seconds, run.strangers = seconds, json.loads(said)


async def _recover(program: Program, clients: HonestClients, run: Soak) -> None:
    """Wait until descriptors and answers are as before, for a minute at most."""
    began = time.monotonic()
    while time.monotonic() - began < RECOVERS_S:
        later = Honest()
        await clients.ask(later, 4.0)
        run.after, run.after_p99_s = read_use(program), later.p99_s
        is_flat = run.after.files <= run.before.files + SPARE_FILES
        is_small = run.after.mb <= run.before.mb + MOST_MB
        is_well = set(later.statuses) == {200} and not later.lost
        if is_flat and is_small and is_well and await clients.finds_it_ready():
            run.recovered_s = round(time.monotonic() - began)
            return


@contextmanager
def served(
    server: str, proxy: str, folder: Path, module: str = "toolserver", *, descriptors: int = DESCRIPTORS
) -> Iterator[Scene]:
    """A server of our own on a world of its own, behind a proxy or not."""
    with ExitStack() as stack:
        world = stack.enter_context(started("world", folder=folder))
        settings = selling(world.url) | {"TOOLSERVER_UPSTREAM__VIA": world.url}
        settings |= {} if proxy == DIRECT else TRUSTED
        settings |= {"TOOLSERVER_HOST": "::"} if has_network() else {}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, max(hard, descriptors)))
        try:
            running = started("serve", "--server", server, folder=folder, module=module, forked=False, **settings)
            program = stack.enter_context(running)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        token = bought(program, world.url, USD)
        behind = f"127.0.0.1:{program.address[1]}"
        front = None if proxy == DIRECT else stack.enter_context(proxied(proxy, behind, folder, has_ipv6=has_network()))
        yield Scene(server, proxy, program, front, token, folder)


def soak_front(
    server: str, proxy: str, seconds: float, folder: Path, *, alone: str | None = None, descriptors: int = DESCRIPTORS
) -> Soak:
    """Start a server for the run, and print its figures while it is still there: on a busy machine it ends late."""
    with served(server, proxy, folder, descriptors=descriptors) as scene:
        run = asyncio.run(soak(replace(scene, alone=alone), seconds))
        print(f"{alone or 'all'} at {descriptors:,} descriptors:", end=" ")
        run.print()
    return run


def has_network() -> bool:
    """Whether this network has the addresses of the strangers' /48."""
    routes = subprocess.run(["ip", "-6", "route", "show", "table", "local"], capture_output=True, text=True)
    return NETWORK in routes.stdout


def own_network(words: list[str]) -> list[str]:
    """Return words that run a command in a network of its own with the /48, or as it is where that is not allowed."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return words
    prepared = f'ip link set lo up && ip -6 route add local {NETWORK} dev lo && exec "$@"'
    entered = ["unshare", "--net", "sh", "-c", prepared, "sh"]
    is_allowed = subprocess.run([*entered, "true"], capture_output=True).returncode == 0
    return [*entered, *words] if is_allowed else words


def soak_apart(server: str, proxy: str, seconds: float, folder: Path) -> dict[str, Any]:
    """Run against one server behind one proxy in a network of its own, print the figures and return what it found."""
    found = folder / "found.json"
    words = ["--server", server, "--proxy", proxy, "--seconds", str(seconds), "--found", str(found)]
    command = own_network([sys.executable, "-m", "tests.hostile.soak", "--here", *words])
    ended = subprocess.run(command, cwd=ROOT, env=environment({}, folder), capture_output=True, text=True)
    print(ended.stdout, ended.stderr)
    assert found.exists(), ended.stderr
    judged: dict[str, Any] = json.loads(found.read_text())
    return judged


def main() -> int:
    """Run against what was chosen and print the figures; 0 when nothing is wrong and times could be judged."""
    parser = argparse.ArgumentParser(prog="tests.hostile.soak")
    add_front_flags(parser)
    parser.set_defaults(seconds=LONG_S)
    parser.add_argument("--here", action="store_true", help="in this network, whatever it has")
    parser.add_argument("--found", type=Path, help="a file for what was found, as JSON")
    parser.add_argument("--alone", nargs="?", const="each", choices=("each", *KINDS), help="a kind of strangers")
    parser.add_argument("--descriptors", type=int, default=DESCRIPTORS, help="of the service")
    chosen = parser.parse_args()
    if not chosen.here:
        return subprocess.call(own_network([sys.executable, "-m", "tests.hostile.soak", "--here", *sys.argv[1:]]))
    wrong = 0
    kinds = KINDS if chosen.alone == "each" else (chosen.alone,)
    for (server, proxy), alone in itertools.product(list_fronts(chosen), kinds):
        with tempfile.TemporaryDirectory() as folder:
            place, many = Path(folder), chosen.descriptors
            run = soak_front(server, proxy, chosen.seconds, place, alone=alone, descriptors=many)
        wrong += bool(run.wrong or run.slow) or run.is_starved
        if chosen.found is not None:
            chosen.found.write_text(json.dumps(run.describe()))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
