"""`python -m tests.hostile.fuzz [inputs] [seed]`: changed requests and settings, counted, over both servers.

Each kind of input has a share of all. A status of 500 or more, a request without an answer, one that takes too long, a
traceback or an error in the log is a finding; the first ones are printed as they were sent.
"""

import asyncio
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import httpx

from tests.hostile.disk import x402_settings
from tests.hostile.facilitators import facilitating
from tests.hostile.fuzz_inputs import WORDS, Fuzzer, changed_bytes
from tests.live.processes import UNLIMITED, Program, started
from toolserver.cli.load_settings import settings_from
from toolserver.settings import PREFIX, Settings

SERVERS = ("hypercorn", "uvicorn")
OF_SETTINGS = 0.02
AT_ONCE = 24
WITHIN_S = 60.0
SHOWN, PROGRESS = 5, 10_000  # examples of each kind of finding, and inputs after which a line is printed
UNDONE = "a signed payment was undone"  # right: this facilitator makes payments that the simulated chain does not have
SHORT = {"TOOLSERVER_LIMITS__HEAD_S": "5", "TOOLSERVER_LIMITS__BODY_S": "5", "TOOLSERVER_LIMITS__IDLE_S": "10"}


@dataclass
class Findings:
    """How many inputs of each kind were sent, what was answered, and what should not have been."""

    sent: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def judge(self, kind: str, sent: bytes, statuses: list[int], why: str = "") -> None:
        """Count one input and what came of it."""
        self.sent[kind] += 1
        if self.sent.total() % PROGRESS == 0:
            print(f"{self.sent.total():,} sent, wrong: {dict(self.wrong) or 'nothing'}", flush=True)
        self.statuses.update(statuses or [0])
        bad = [status for status in statuses if status >= 500]
        if why or bad:
            self.add(why or f"status {bad[0]}", f"{kind}: {sent[:1500]!r}")

    def add(self, why: str, example: str) -> None:
        """Note what should not have been."""
        self.wrong[why] += 1
        if self.wrong[why] <= SHOWN:
            self.examples.append(f"{why}: {example}")
            print(self.examples[-1], flush=True)


class Wire:
    """A connection that is opened when it is needed."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, sent: bytes) -> int:
        """Send a framed request and read its answer. Returns the status, 0 when there is none."""
        fresh = self._open is None
        reader, writer = self._open = self._open or await asyncio.open_connection(*self._address)
        try:
            writer.write(sent)
            status, keep = await _read_answer(reader, is_head=sent.startswith(b"HEAD "))
        except (asyncio.IncompleteReadError, OSError):
            self.close()
            return 0 if fresh else await self.ask(sent)
        if not keep:
            self.close()
        return status

    async def pour(self, sent: bytes) -> list[int]:
        """Send any bytes on a connection of their own, end our side, and read to the end. Returns all statuses."""
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(sent)
            writer.write_eof()
            came = await reader.read()
        except OSError:
            came = b""
        finally:
            writer.close()
        return [int(part[:3]) for part in came.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit() and part[3:4] == b" "]

    def close(self) -> None:
        """End the connection."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


async def _read_answer(reader: asyncio.StreamReader, *, is_head: bool) -> tuple[int, bool]:
    """The status of an answer, read to its end, and whether the connection goes on."""
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        if status >= 200:
            break
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    keep = fields.get(b"connection") != b"close"
    if is_head or status in (204, 304):
        return status, keep
    if b"content-length" in fields:
        await reader.readexactly(int(fields[b"content-length"]))
    elif fields.get(b"transfer-encoding") == b"chunked":
        while (size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)) > 0:
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    else:
        await reader.read()
        keep = False
    return status, keep


async def send(fuzzer: Fuzzer, program: Program, inputs: int, found: Findings) -> None:
    """Send so many inputs of all kinds to a server, some at once."""
    todo: Iterator[tuple[str, Callable[[], bytes]]] = iter(
        [(kind, make) for kind, (make, share) in fuzzer.kinds.items() for _ in range(round(inputs * share))]
    )

    async def work() -> None:
        wire = Wire(program.address)
        for kind, make in todo:
            sent, why, statuses = make(), "", []
            try:
                async with asyncio.timeout(WITHIN_S):
                    statuses = await wire.pour(sent) if kind == "raw HTTP" else [await wire.ask(sent)]
            except TimeoutError:
                why = f"no end within {WITHIN_S:.0f} s"
                wire.close()
            if statuses == [0]:
                why = "no answer"
            found.judge(kind, sent, statuses, why)
        wire.close()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def fuzz_servers(inputs: int, seed: int, found: Findings) -> None:
    """Send inputs to both real servers side by side, and look at their logs afterwards."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        facilitator = running.enter_context(facilitating())
        more = UNLIMITED | SHORT | x402_settings(facilitator.url)
        programs = []
        for server in SERVERS:
            (own := folder / server).mkdir()
            programs.append(running.enter_context(started("demo", "--server", server, folder=own, **more)))
        before = [program.resident_mb for program in programs]
        asyncio.run(_send_to(programs, inputs // len(SERVERS), seed, found))
        for server, program, megabytes in zip(SERVERS, programs, before, strict=True):
            _look_at(program, server, megabytes, found)


async def _send_to(programs: list[Program], inputs: int, seed: int, found: Findings) -> None:
    await asyncio.gather(
        *(send(fuzzer_of(program, seed + n), program, inputs, found) for n, program in enumerate(programs))
    )


def fuzzer_of(program: Program, seed: int) -> Fuzzer:
    """A fuzzer that has the token of a demo and a receipt of it."""
    token = str(program.ready["token"])
    paid = httpx.get(f"{program.url}/api/pro/macro", headers={"Authorization": f"Bearer {token}"}, timeout=30)
    return Fuzzer(random.Random(seed), token, paid.headers["x-service-receipt"])


def _look_at(program: Program, server: str, before_mb: float, found: Findings) -> None:
    """Whether a server is as it was, and what stands in its log."""
    health = httpx.get(f"{program.url}/api/health", timeout=10).status_code
    print(f"{server}: {before_mb:.0f} MB before, {program.resident_mb:.0f} MB after; health {health}", flush=True)
    if health != 200:
        found.add("not healthy afterwards", str(health))
    for line in program.said.splitlines():
        if ('"level": "error"' in line and UNDONE not in line) or "Traceback" in line:
            found.add("an error in the log", line[-3000:])
    program.log.write_text("")  # what stood there is noted


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """No setting but those that follow, in a folder of its own."""
    kept, where = dict(os.environ), Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(where)
        os.environ.clear()
        os.environ.update(kept)


def fuzz_settings(inputs: int, seed: int, found: Findings) -> None:
    """Read changed settings, of the environment and of a file: a message or settings, nothing else."""
    rng = random.Random(seed)
    parts = {name: getattr(field.annotation, "model_fields", {}) for name, field in Settings.model_fields.items()}
    names = [f"{part}__{name}" if inner else part for part, inner in parts.items() for name in inner or [""]]
    with tempfile.TemporaryDirectory() as folder, _alone(folder):
        for _ in range(inputs):
            given = {f"{PREFIX}{rng.choice(names).upper()}": rng.choice(WORDS).replace("\0", "") for _ in range(2)}
            for name in [name for name in os.environ if name.startswith(PREFIX)]:
                del os.environ[name]
            os.environ.update(given)
            file = changed_bytes(rng, b'port = 8080\nbase_url = "https://a.example"\n[limits]\ndaily = 5\n')
            Path("toolserver.toml").write_bytes(file if rng.random() < 0.5 else b"")
            why = ""
            try:
                settings_from()
            except click.ClickException:
                pass
            except Exception as error:
                logging.getLogger(__name__).debug("a finding", exc_info=True)
                why = f"settings raise {type(error).__name__}"
            found.judge("settings", repr((given, file)).encode(), [], why)


def fuzz(inputs: int, seed: int = 1) -> Findings:
    """Send so many inputs in all, and return what was found."""
    found = Findings()
    fuzz_settings(round(inputs * OF_SETTINGS), seed, found)
    found.statuses.clear()
    fuzz_servers(inputs - found.sent.total(), seed, found)
    return found


def main(inputs: int = 1_000_000, seed: int = 1) -> int:
    """Print the figures, and return how many kinds of findings there are."""
    began = time.monotonic()
    found = fuzz(inputs, seed)
    print(f"{found.sent.total():,} inputs in {time.monotonic() - began:.0f} s, seed {seed}")
    for kind, count in found.sent.items():
        print(f"  {kind:22} {count:9,}")
    print("answers by status (0: none):", dict(sorted(found.statuses.items())))
    print("wrong:", dict(found.wrong) or "nothing")
    return len(found.wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
