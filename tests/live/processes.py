"""Our own program as a process of its own: started, asked, stopped, and never left behind."""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

from tests.live.forking import Process, start_program
from tests.surroundings import clean_surroundings

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "toolserver")
START_S, STOP_S = 60.0, 15.0

CORE = (
    "briefing", "btc_price", "crypto_movers", "earthquakes", "economic_data", "fear_greed", "forex", "predictions",
    "service_status",
)  # fmt: skip
PATHS = {
    "briefing": "/api/briefing",
    "btc_price": "/api/btc-price",
    "crypto_movers": "/api/crypto-movers",
    "earthquakes": "/api/earthquake",
    "economic_data": "/api/economic-data",
    "fear_greed": "/api/fear-greed",
    "forex": "/api/forex",
    "predictions": "/api/predictions",
    "service_status": "/api/service-status",
    "health": "/api/health",
}
ADDRESS_SPACE = 1_500_000 * 1024
UNLIMITED = {"TOOLSERVER_LIMITS__ENABLED": "false"}


@dataclass
class Program:
    """A running `toolserver`, its ready line, and the file its stderr goes to."""

    process: Process
    ready: dict[str, Any]
    log: Path
    rest: bytes = field(default=b"", init=False)

    @property
    def url(self) -> str:
        """Its own address (of a world: that of the world)."""
        return str(self.ready.get("base_url") or self.ready["world_url"])

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for plain sockets."""
        parts = httpx.URL(self.url)
        return parts.host, parts.port or 80

    @property
    def said(self) -> str:
        """What stands on stderr so far."""
        return self.log.read_text()

    @property
    def resident_mb(self) -> float:
        """Memory in use, in megabytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def limit_address_space(self) -> None:
        """Let it address 1,500,000 KB from now on, as after `ulimit -v 1500000`."""
        resource.prlimit(self.process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and wait for that: its exit code. `rest` is what it wrote to stdout since the ready line."""
        self.process.send_signal(number)
        self.rest, _ = self.process.communicate(timeout=STOP_S)
        return self.process.wait()


def environment(more: dict[str, str], home: Path | None = None) -> dict[str, str]:
    """The environment of a program: without a setting or key of whoever runs the tests, and with a home of its own.

    It stops without a drain: hundreds of stops would take five seconds each.
    """
    kept = clean_surroundings(home or os.environ["HOME"])
    return kept | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TOOLSERVER_SERVING__DRAIN_S": "0"} | more


def command(verb: str, flags: Sequence[str], folder: Path, module: str = "toolserver") -> list[str]:
    """The words of a long-running verb on a free port, of our program or of a module that stands in for it."""
    own = ["--port", "0"] if verb == "world" else ["--port", "0", "--ready-json", "--data-dir", str(folder / "data")]
    return [sys.executable, "-m", module, verb, *own, *flags]


@contextmanager
def started(
    verb: str,
    *flags: str,
    folder: Path,
    module: str = "toolserver",
    forked: bool = True,
    ends_with: int = 0,
    fills: bool = False,
    **more: str,
) -> Iterator[Program]:
    """`toolserver serve|demo|world`, ready. When the block ends it is stopped, and must have ended well and quietly.

    Tests about starting, ending or memory start it plainly, with `forked=False`. With `fills`, a demo is ready once its
    home page has values, as it is for people.
    """
    flags = (*flags, "--no-wait") if verb == "demo" and not fills else flags
    process, log = begin_program(command(verb, flags, folder, module), folder=folder, forked=forked, **more)
    try:
        program = Program(process, read_ready_line(process, log), log)
        yield program
        code = program.stop() if process.poll() is None else process.wait()
        assert code == ends_with, f"ended with {code}:\n{program.said}"
        assert "Traceback" not in program.said, program.said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def begin_program(words: Sequence[str], *, folder: Path, forked: bool = True, **more: str) -> tuple[Process, Path]:
    """Start `python -m MODULE …` in a folder that is also its home. Return it, and the file of its errors."""
    log = folder / f"{words[3]}.{time.monotonic_ns()}.log"
    with log.open("wb") as errors:
        surroundings = environment(more, folder)
        stdout = subprocess.PIPE
        process = start_program(words, env=surroundings, cwd=folder, stdout=stdout, stderr=errors, forked=forked)
    return process, log


def read_ready_line(process: Process, log: Path, within_s: float = START_S) -> dict[str, Any]:
    line = _line(process.stdout, within_s)
    assert line, f"it did not start:\n{log.read_text()}"
    found: dict[str, Any] = json.loads(line)
    return found


def _line(stream: IO[bytes] | None, within_s: float) -> bytes:
    """The next line, or nothing when none comes in time. Unbuffered: what follows it stays in the pipe."""
    assert stream is not None
    line, until = b"", time.monotonic() + within_s
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0.0, until - time.monotonic()))
        byte = os.read(stream.fileno(), 1) if ready else b""
        if not byte:
            break
        line += byte
    return line


def ran(*words: str, folder: Path, within_s: float = 30, **more: str) -> subprocess.CompletedProcess[bytes]:
    """A verb that ends by itself, and what it said. Without a data directory of its own it has one in the folder."""
    env, pipes = environment(more, folder), {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start_program([*COMMAND, *words], env=env, cwd=folder, **pipes)
    try:
        stdout, stderr = process.communicate(timeout=within_s)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess([*COMMAND, *words], process.wait(), stdout, stderr)


class Sim:
    """The control interface of a running world."""

    def __init__(self, world_url: str) -> None:
        self._client = httpx.Client(base_url=f"{world_url}/_sim/", timeout=20, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def get(self, what: str, **params: str) -> Any:
        return self._client.get(what, params=params).raise_for_status().json()

    def put(self, what: str, body: dict[str, Any]) -> None:
        self._client.put(what, json=body).raise_for_status()

    def scenario(self, name: str) -> None:
        self.put("scenario", {"name": name})

    def fault(self, match: str, kind: str, **parameters: Any) -> None:
        self._client.post("faults", json={"match": match, "kind": kind, **parameters}).raise_for_status()

    def heal(self) -> None:
        """Remove all faults."""
        self._client.delete("faults").raise_for_status()

    def inject(self, kind: str, **fields: Any) -> None:
        """Let something happen now, in every source that carries it."""
        self._client.post("events", json={"kind": kind, **fields}).raise_for_status()

    def paid(self, wallet: str, usd: int) -> str:
        """Pay on the simulated chain; the transaction's hash."""
        answer = self._client.post("chain/transfer", json={"to": wallet, "amount_usd": usd}).raise_for_status()
        return str(answer.json()["tx_hash"])

    def reset(self) -> None:
        self._client.post("reset").raise_for_status()

    def forget(self) -> None:
        """Empty the log of requests."""
        self._client.delete("requests").raise_for_status()

    def requests(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("requests")
        return found


@contextmanager
def control(world_url: str) -> Iterator[Sim]:
    sim = Sim(world_url)
    try:
        yield sim
    finally:
        sim.close()
