"""Stop a service in the middle of its calls, some of them with half a body, again and again.

`python -m tests.hostile.stops --server uvicorn --proxy nginx --seconds 60` prints what each call got, and ends with 1
if one was not answered or the service did not end well. Without `--server` or `--proxy` it stops each.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.proxies import TRUSTED, proxied
from tests.hostile.fronts import DIRECT, add_front_flags, list_fronts
from tests.hostile.unfinished import BODIES, HEAD, POST, Target
from tests.live.processes import Program, control, started

SLOW_MS = 60_000  # for each answer of an upstream: longer than any call waits for it
PATIENCE_S = 40.0
BEGIN_S = 1.0  # until all are in progress: nothing tells when half a body has arrived
FREE = ("/api/weather?lat=10&lon=11", "/api/weather?lat=12&lon=13", "/api/air-quality?lat=10&lon=11")
PAID = ("/api/pro/whales", "/api/pro/briefing")
REFUSED = "503 shutting_down"
ANSWERS = {"200", REFUSED, "503 upstream_unavailable"}
WEATHER = {"name": "weather", "arguments": {"lat": 20, "lon": 21}}
MCP_CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": WEATHER}).encode()


@dataclass(slots=True)
class Stop:
    """What the calls in progress and those with half a body got, and how the service ended."""

    calls: Counter[str] = field(default_factory=Counter)
    halves: Counter[str] = field(default_factory=Counter)
    code: int = 0
    seconds: float = 0.0

    @property
    def wrong(self) -> list[str]:
        """What must not happen: calls without an answer in words, half a body that was taken for a call."""
        lost = {f"a call: {got}": count for got, count in self.calls.items() if got not in ANSWERS}
        taken = {f"half a body: {got}": count for got, count in self.halves.items() if got != REFUSED}
        code = [f"it ended with {self.code}"] if self.code else []
        return [f"{what} ({count})" for what, count in (lost | taken).items()] + code

    def __str__(self) -> str:
        halves = f", half a body: {dict(self.halves)}" if self.halves else ""
        return f"calls: {dict(self.calls)}{halves}; it ended with {self.code} after {self.seconds:.1f} s"


async def _ask(target: Target, number: int, words: bytes) -> str:
    """Say something on a connection of its own, and return the status of the answer and its problem, if it has one."""
    reader, writer = await target.connect(f"127.0.3.{number + 1}")
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write(words)
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:")
                body = await reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError, StopIteration) as error:
                return type(error).__name__
    except TimeoutError:
        return "nothing"
    finally:
        writer.transport.abort()
    status = head.split(b" ", 2)[1].decode()
    is_problem = b"content-type: application/problem+json" in head.lower()
    return f"{status} {json.loads(body)['error']}" if is_problem else status if body else f"{status} without a body"


def _say_get(path: str, token: str = "") -> bytes:
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\n{authorization}".encode() + HEAD + b"\r\n"


async def stop_amid_calls(program: Program, target: Target, *, halves: bool) -> Stop:
    """Begin calls that wait for upstreams, and stop the service once it works on all of them."""
    stop = Stop()
    post = POST + b"Content-Length: %d\r\n\r\n" % len(MCP_CALL) + MCP_CALL
    whole = [*map(_say_get, FREE), *(_say_get(path, program.ready["token"]) for path in PAID), post]
    half = list(BODIES) if halves else []
    with control(program.ready["world_url"]) as world:
        world.fault("*", "latency", ms=SLOW_MS)
        calls = [asyncio.create_task(_ask(target, number, words)) for number, words in enumerate([*whole, *half])]
    await asyncio.sleep(BEGIN_S)
    began = time.monotonic()
    program.process.send_signal(signal.SIGTERM)
    stop.code = await asyncio.to_thread(program.process.wait)
    stop.seconds = time.monotonic() - began
    got = await asyncio.gather(*calls)  # a proxy may keep an answer until the rest of a request is there, or is late
    stop.calls.update(got[: len(whole)])
    stop.halves.update(got[len(whole) :])
    return stop


def stop_once(server: str, proxy: str, folder: Path, *, is_careless: bool = False) -> Stop:
    """Start a service behind a proxy and stop it. Our proxies keep half a body to themselves; careless ones do not."""
    trusted = TRUSTED if proxy != DIRECT else {}
    with started("demo", "--server", server, folder=folder, forked=False, **trusted) as program:
        if proxy == DIRECT:
            return asyncio.run(stop_amid_calls(program, Target(program, None), halves=True))
        behind = program.url.removeprefix("http://")
        with proxied(proxy, behind, folder, is_careless=is_careless) as front:
            return asyncio.run(stop_amid_calls(program, Target(program, front), halves=is_careless))


def main() -> int:
    """Run what the command line says. Return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="tests.hostile.stops")
    add_front_flags(parser)
    parser.add_argument("--careless", action="store_true", help="the proxy passes on bodies as they come")
    chosen = parser.parse_args()
    is_wrong = False
    for server, proxy in list_fronts(chosen):
        until = time.monotonic() + chosen.seconds
        while time.monotonic() < until:
            with tempfile.TemporaryDirectory() as folder:
                stop = stop_once(server, proxy, Path(folder), is_careless=chosen.careless)
            print(f"{server} behind {proxy}: {stop}", *stop.wrong, sep="\n  ", flush=True)
            is_wrong = is_wrong or bool(stop.wrong)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
