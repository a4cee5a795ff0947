"""`python -m bench.soak [--minutes 20] [--server uvicorn] [--save FILE.json]`: run a simulated day, with all features.

The demo's world runs so fast that a day passes. Callers use REST and MCP, free and paid, with and without keys.
Webhooks are delivered, and every few minutes the upstreams fail in another way. Memory, descriptors and the times of
cached answers are sampled. At the end the books are compared with everything, and every receipt is verified.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.processes import Server, python, started

DAY_S, SAMPLE_S, WARM_SHARE = 86_400, 1.0, 0.25
FIRST_DELIVERY_S = 60.0
USD, CREDITS_PER_USD = 200, 50
FREE = ("/api/btc-price", "/api/briefing", "/api/forex", "/api/fear-greed", "/api/service-status", "/api/earthquake")
PAID = ("/api/pro/briefing", "/api/pro/macro", "/api/pro/sentiment")
WATCHED = ("agent-context", "world-deltas")
FAULTS: tuple[dict[str, Any], ...] = (
    {},
    {"match": "*", "kind": "latency", "ms": 300, "jitter_ms": 500},
    {"match": "*", "kind": "status", "code": 503, "probability": 0.4},
    {"match": "*", "kind": "rate_limit"},
    {"match": "*", "kind": "truncated", "probability": 0.5},
    {"match": "*", "kind": "reset", "probability": 0.3},
    {"match": "*", "kind": "timeout", "probability": 0.3},
)
RISE, SPARE_MS, SPARE_FILES = 0.02, 20.0, 16


@dataclass
class Sample:
    """The server at a moment: seconds since the start, memory, descriptors, p99 of cached answers since the last
    sample.
    """

    at_s: float
    memory_mb: float
    files: int
    p99_ms: float


@dataclass
class Day:
    """The results of a day."""

    server: str
    minutes: float
    samples: list[Sample] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    deliveries: int = 0
    receipts: int = 0
    wrong: list[str] = field(default_factory=list)

    def judge(self) -> list[str]:
        """Return everything that must not happen: recorded faults, and growth after the warm-up."""
        found = [*self.wrong]
        if any(status >= 500 and status not in (503,) for status in self.statuses):
            found.append(f"statuses {dict(self.statuses)}")
        later = self.samples[len(self.samples) // 2 :]
        if len(later) >= 60:
            half = len(later) // 2
            first, last = later[:half], later[half:]
            memory = [statistics.median(s.memory_mb for s in part) for part in (first, last)]
            p99 = [statistics.median(s.p99_ms for s in part) for part in (first, last)]
            files = [max(s.files for s in part) for part in (first, last)]
            found += (
                [f"memory rises: {memory[0]:.1f}, {memory[1]:.1f} MB"] if memory[1] > memory[0] * (1 + RISE) else []
            )
            found += [f"p99 rises: {p99[0]:.0f}, {p99[1]:.0f} ms"] if p99[1] > 1.25 * p99[0] + SPARE_MS else []
            found += [f"descriptors rise: {files[0]}, {files[1]}"] if files[1] > files[0] + SPARE_FILES else []
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON, to be saved; `calls` and `statuses` by name."""
        counts = {"calls": dict(self.calls), "statuses": dict(self.statuses), "found": self.judge()}
        samples = [{name: round(value, 2) for name, value in vars(sample).items()} for sample in self.samples]
        return vars(self) | counts | {"samples": samples}


class Inbox:
    """Receives webhooks on this machine, and keeps the ids of their receipts."""

    def __init__(self) -> None:
        self.receipts: set[str] = set()
        self.first = asyncio.Event()
        self.url = ""
        self._open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> "Inbox":
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower():
                lines = dict(line.split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
                await reader.readexactly(int(lines.get("content-length", "0")))
                self.receipts.add(lines.get("x-service-receipt-id", ""))
                self.first.set()
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


class Callers:
    """The callers of the server, until the day has ended."""

    def __init__(self, http: httpx.AsyncClient, token: str, day: Day, ends: float) -> None:
        self._http, self._bearer, self._day, self._ends = http, {"authorization": f"Bearer {token}"}, day, ends
        self.took_ms: list[float] = []
        self.receipts: list[str] = []
        self._turn = 0

    async def repeat(self, ask: Callable[[int], Awaitable[None]], pause_s: float) -> None:
        """Repeat a call, in turns that no other caller has."""
        while time.monotonic() < self._ends:
            self._turn += 1
            self._day.calls[ask.__name__] += 1
            try:
                await ask(self._turn)
            except httpx.HTTPError as error:
                self._day.wrong.append(f"{ask.__name__}: {type(error).__name__}")
            await asyncio.sleep(pause_s)

    def _note(self, answer: httpx.Response, begun: float) -> None:
        self._day.statuses[answer.status_code] += 1
        if "hit" in answer.headers.get("cache-status", ""):
            self.took_ms.append((time.perf_counter() - begun) * 1e3)
        if "x-service-receipt" in answer.headers:
            self.receipts.append(answer.headers["x-service-receipt"])

    async def free_rest(self, turn: int) -> None:
        begun = time.perf_counter()
        self._note(await self._http.get(FREE[turn % len(FREE)]), begun)

    async def paid_rest(self, turn: int) -> None:
        key = {"idempotency-key": f"turn {turn // 2}"} if turn % 3 == 0 else {}
        begun = time.perf_counter()
        self._note(await self._http.get(PAID[turn % len(PAID)], headers=self._bearer | key), begun)

    async def free_mcp(self, turn: int) -> None:
        await self._tell("btc_price" if turn % 2 else "briefing", {})

    async def paid_mcp(self, turn: int) -> None:
        result = await self._tell("premium_briefing", self._bearer)
        receipt = result.get("_meta", {}).get("receipt")
        if receipt is not None:
            self.receipts.append(receipt)

    async def uncommon_mcp(self, turn: int) -> None:
        message = {"jsonrpc": "2.0", "id": turn, "method": "completion/complete", "params": {}}
        await self._http.post("/api/mcp", json=message)

    async def _tell(self, name: str, headers: dict[str, str]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
        answer = await self._http.post("/api/mcp", json=message, headers=headers)
        self._day.statuses[answer.status_code] += 1
        if answer.status_code != 200:
            self._day.wrong.append(f"{name} over MCP: {answer.status_code} {answer.text[:200]}")
            return {}
        result: dict[str, Any] = answer.json()["result"]
        return result


async def buy(http: httpx.AsyncClient, sim: httpx.AsyncClient, speed: float) -> str:
    """Return a token with credits for the day, bought on the simulated chain."""
    quote = (await http.post("/api/payment/buy-credits", json={"amount_usd": USD})).json()
    await sim.put("/_sim/clock", json={"speed": max(30.0, speed)})
    paid = await sim.post("/_sim/chain/transfer", json={"to": quote["wallet"], "amount_usd": USD})
    confirm = {"tx_hash": paid.json()["tx_hash"], "nonce": quote["memo"]}
    for _ in range(120):
        answer = await http.post("/api/payment/confirm", json=confirm)
        if answer.status_code == 200:
            return str(answer.json()["token"])
        await asyncio.sleep(0.5)
    raise SystemExit(f"credits could not be bought: {answer.text}")


async def break_upstreams(sim: httpx.AsyncClient, day: Day, ends: float) -> None:
    """Cause another fault in every twelfth of the day, and none in between."""
    each_s = max(2.0, day.minutes * 60 / 12)
    number = 0
    while time.monotonic() < ends:
        await sim.delete("/_sim/faults")
        if rule := FAULTS[number % len(FAULTS)]:
            (await sim.post("/_sim/faults", json=rule)).raise_for_status()
        number += 1
        await asyncio.sleep(min(each_s, max(0.1, ends - time.monotonic())))
    await sim.delete("/_sim/faults")


async def watch(server: Server, callers: Callers, day: Day, ends: float) -> None:
    """Take a sample each second."""
    begun = time.monotonic()
    while time.monotonic() < ends:
        await asyncio.sleep(SAMPLE_S)
        took, callers.took_ms = sorted(callers.took_ms), []
        p99 = took[int(len(took) * 0.99)] if took else 0.0
        day.samples.append(Sample(time.monotonic() - begun, server.memory_mb(), server.descriptors(), p99))


async def live(server: Server, day: Day) -> None:
    """Run the day."""
    speed = DAY_S / (day.minutes * 60)
    world = httpx.AsyncClient(base_url=server.ready["world_url"], timeout=30, trust_env=False)
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as http,
        world as sim,
        Inbox() as inbox,
    ):
        token = await buy(http, sim, speed)
        await sim.put("/_sim/clock", json={"speed": speed})
        bearer = {"authorization": f"Bearer {token}"}
        for endpoint in WATCHED:
            asked = {"endpoint": endpoint, "webhook_url": inbox.url}
            (await http.post("/api/pro/subscribe", json=asked, headers=bearer)).raise_for_status()
        ends = time.monotonic() + day.minutes * 60
        callers = Callers(http, token, day, ends)
        kinds = ((callers.free_rest, 0.03), (callers.free_mcp, 0.06), (callers.paid_rest, 0.5), (callers.paid_mcp, 0.5))
        async with asyncio.TaskGroup() as tasks:
            for ask, pause_s in (*kinds, (callers.uncommon_mcp, 2.0)):
                tasks.create_task(callers.repeat(ask, pause_s))
            tasks.create_task(break_upstreams(sim, day, ends))
            tasks.create_task(watch(server, callers, day, ends))
        with suppress(TimeoutError):  # a day of half a minute may end before the first delivery on a busy machine
            await asyncio.wait_for(inbox.first.wait(), FIRST_DELIVERY_S)
        day.deliveries = len(inbox.receipts)
        await verify(http, callers.receipts, day)


async def verify(http: httpx.AsyncClient, receipts: list[str], day: Day) -> None:
    """Verify every receipt that was issued."""
    for receipt in dict.fromkeys(receipts):
        answer = await http.post("/api/receipt/verify", json={"receipt": receipt})
        day.receipts += 1
        if answer.status_code != 200 or answer.json().get("valid") is not True:
            day.wrong.append(f"a receipt is not valid: {answer.text[:200]}")
            return


def check_books(folder: Path) -> list[str]:
    """Return the faults that `toolserver books check` finds."""
    command = python("-m", "toolserver", "books", "check", "--json", "--data-dir", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if not done.stdout:
        return [f"books check ended with {done.returncode}: {done.stderr[-300:]}"]
    return [f"{one['name']}: {text}" for one in json.loads(done.stdout)["checks"] for text in one["differences"]]


def run(kind: str, minutes: float, folder: Path) -> Day:
    """Run a day on its own server."""
    day = Day(kind, minutes)
    command = python("-m", "toolserver", "demo", "--server", kind, "--port", "0", "--ready-json", "--data-dir")
    limits = {"TOOLSERVER_LIMITS__ENABLED": "false", "TOOLSERVER_LOGS__LEVEL": "error"}
    with started([*command, str(folder / "data")], **limits) as server:
        asyncio.run(live(server, day))
    day.wrong += check_books(folder / "data")
    return day


def main() -> int:
    """Run a day and print the results. Return 1 if a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--server", choices=("hypercorn", "uvicorn"), default="uvicorn")
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-soak-") as name:
        day = run(asked.server, asked.minutes, Path(name))
    found = day.judge()
    last = day.samples[-1]
    print(f"{day.server}: {dict(day.calls)}; answers {dict(day.statuses)}; {day.deliveries} webhooks")
    print(f"{day.receipts} receipts verified; at the end {last.memory_mb:.0f} MB, {last.files} descriptors")
    print("wrong: " + ("; ".join(found) or "nothing"))
    if asked.save:
        asked.save.write_text(json.dumps(day.as_json()) + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
