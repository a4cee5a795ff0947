"""Measure row 12: ten sources of 20 ms composed into one answer, over real connections to a process that waits so long.

The figures are a caller's time and this process's CPU time for a composition that was never made before.
"""

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import anyio
from pydantic import Field

from bench.in_process import request, settings_for
from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.misses import ask
from toolserver.app import Service, ServiceParts
from toolserver.context.context import ToolContext, via
from toolserver.core.models import Payload
from toolserver.registry.registry import Registry, operation_of, tool
from toolserver.upstream.source import Get, HostGroup, Licence, Source

SOURCES, SLOW_S, AT_ONCE = 10, 0.02, 16
P50_MS, CPU_MS, TIMES_ALONE = 40, 12, 2
PATH = "/api/ten"


def make_source(number: int) -> Source[int, float]:
    """Return a source on its own host, without limits in practice."""

    def ask_for(query: int, keys: Mapping[str, str]) -> Get:
        return Get(f"https://s{number}.example/{query}")

    def read(body: Any, query: int) -> float:
        return float(body["value"])

    group = HostGroup(f"bench{number}", 100, 0, 1_000_000, 60)
    limits: dict[str, Any] = {"fresh_s": 30, "keep_s": 3600, "timeout_s": 5}
    return Source(f"Bench.s{number}", ask_for, read, licence=Licence("yes", "Bench"), hosts=group, **limits)


TEN = tuple(make_source(number) for number in range(SOURCES))


class Sum(Payload):
    total: float


@tool(path=PATH, title="Ten", ttl_s=30, toolset="core", sources=TEN)
async def ten(ctx: ToolContext, turn: Annotated[int, Field(ge=0, le=10**9, description="Another answer each")]) -> Sum:
    """The sum of ten sources that are asked at the same time; it exists to be measured."""
    found: list[float | None] = [None] * SOURCES

    async def read(number: int) -> None:
        found[number] = await ctx.section(f"s{number}", via(TEN[number], turn))

    async with anyio.create_task_group() as tasks:
        for number in range(SOURCES):
            tasks.start_soon(read, number)
    return Sum(total=sum(value for value in found if value is not None))


def answer_late(pipe: Connection) -> None:
    """Run an upstream in its own process: it answers every request after a delay, on a persistent connection."""
    body = b'{"value":1}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(SLOW_S)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(speak, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


async def measure(folder: Path, address: str, count: int) -> tuple[list[float], float, float]:
    """Return the times of single compositions, the CPU time of one, and the time of many at once, all in ms."""
    parts = ServiceParts(base_url="http://127.0.0.1", registry=Registry([operation_of(ten)]), background=False)
    async with Service.build(settings_for(folder, address, enabled=False), parts) as service:
        app, turn = service.web_app(), 0

        async def compose() -> float:
            nonlocal turn
            turn += 1
            begun = time.perf_counter()
            status = await ask(app, {**request(PATH), "query_string": b"turn=%d" % turn}, b"")
            if status != 200:
                raise SystemExit(f"a composition was answered with {status}")
            return (time.perf_counter() - begun) * 1e3

        for _ in range(3):
            await compose()
        cpu = time.process_time()
        alone = [await compose() for _ in range(count)]
        cpu = (time.process_time() - cpu) / count * 1e3
        crowds = []
        for _ in range(3):
            begun = time.perf_counter()
            await asyncio.gather(*(compose() for _ in range(AT_ONCE)))
            crowds.append((time.perf_counter() - begun) * 1e3)
    return alone, cpu, min(crowds)


def judge(effort: Effort) -> Verdict:
    """Measure one composition alone, and many at once."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=answer_late, args=(theirs,), daemon=True)
    process.start()
    try:
        address = f"http://127.0.0.1:{ours.recv()}"
        with tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name:
            alone, cpu, crowd = asyncio.run(measure(Path(name), address, 20 * effort.rounds))
    finally:
        process.terminate()
        process.join()
    p50 = statistics.median(alone)
    bars = [
        Bar(12, "ten sources of 20 ms, p50", p50, P50_MS, "ms"),
        Bar(12, "CPU of a composition", cpu, CPU_MS, "ms"),
        Bar(12, f"{AT_ONCE} compositions at once / one alone", crowd / p50, TIMES_ALONE, "x"),
    ]
    lines = [
        Line("one alone", p50, min(alone), max(alone)),
        Line(f"{AT_ONCE} at once", crowd, crowd, crowd),
        Line("CPU of one", cpu, cpu, cpu),
    ]
    return Verdict(bars, [Table("compose", "Ten sources of 20 ms composed into one answer", "ms", lines)])
