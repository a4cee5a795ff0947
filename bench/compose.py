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
from bench.pairs import PIECE, Pair, Sample, Samples, Side, measure_pairs, ratio_of, reference_of, value_of
from bench.processes import waited_s
from bench.rows import lines_of
from toolserver.app import Service, ServiceParts
from toolserver.context.context import ToolContext, via
from toolserver.core.models import Payload
from toolserver.registry.registry import Registry, operation_of, tool
from toolserver.serving.listen import freeze_startup
from toolserver.upstream.source import Get, HostGroup, Licence, Source

SOURCES, SLOW_S, AT_ONCE = 10, 0.02, 16
P50_MS, CPU_MS, TIMES_ALONE = 40, 9, 4
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


class Composer:
    """Asks a service for compositions that were never made before."""

    def __init__(self, app: Any) -> None:
        self._app, self._turn = app, 0

    async def compose(self) -> None:
        """Ask for one. Raises SystemExit for another status than 200."""
        self._turn += 1
        status = await ask(self._app, {**request(PATH), "query_string": b"turn=%d" % self._turn}, b"")
        if status != 200:
            raise SystemExit(f"a composition was answered with {status}")

    def side(self, name: str, at_once: int, times: int = 1) -> Side:
        """Return the side of this many at once, some times in a row.

        Its figures: `cpu_us` of one, and the median `ms` of a time, less what this process waited for a core.
        """

        async def measure() -> Sample:
            took, cpu = list[float](), time.process_time()
            for _ in range(times):
                begun, waited = time.perf_counter(), waited_s()
                await asyncio.gather(*(self.compose() for _ in range(at_once)))
                took.append(time.perf_counter() - begun - (waited_s() - waited))
            spent = (time.process_time() - cpu) / times / at_once
            return {"ms": statistics.median(took) * 1e3, "cpu_us": spent * 1e6}

        return Side(name, measure)


async def compare(folder: Path, address: str, count: int) -> tuple[list[Pair], Samples]:
    """Measure the time of a composition, its CPU time, and many at once against one."""
    parts = ServiceParts(base_url="http://127.0.0.1", registry=Registry([operation_of(ten)]), background=False)
    async with Service.build(settings_for(folder, address, enabled=False), parts) as service:
        composer = Composer(service.web_app())
        for _ in range(3):
            await composer.compose()
        freeze_startup()  # as every server does, so that no search for garbage looks at what was loaded
        alone, crowd = composer.side("one alone", 1, times=3), composer.side(f"{AT_ONCE} at once", AT_ONCE)
        singles = [
            Pair("ten sources of 20 ms, p50", (alone,), value_of("ms")),
            Pair("CPU of a composition", (PIECE, alone), lambda piece, one: reference_of("cpu_us")(piece, one) / 1e3),
        ]
        crowds = Pair(f"{AT_ONCE} compositions at once / one alone", (crowd, alone), ratio_of("ms"))
        samples = await measure_pairs(singles, count)
        # Crowds come last: they leave many idle connections, which every later request looks at.
        samples[crowd.name] = (await measure_pairs([crowds], count + count // 2))[crowd.name]
        return [*singles, crowds], samples


def judge(effort: Effort) -> Verdict:
    """Measure one composition alone, and many at once."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=answer_late, args=(theirs,), daemon=True)
    process.start()
    try:
        address = f"http://127.0.0.1:{ours.recv()}"
        with tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name:
            pairs, samples = asyncio.run(compare(Path(name), address, effort.pairs))
    finally:
        process.terminate()
        process.join()
    p50, cpu, crowd = pairs
    bars = [
        Bar.of_pair(p50, 12, P50_MS, "ms"),
        Bar.of_pair(cpu, 12, CPU_MS, "ms"),
        Bar.of_pair(crowd, 12, TIMES_ALONE, "x"),
    ]
    lines = [*lines_of(samples, what="ms"), Line.of_values("CPU of one", cpu.figures)]
    return Verdict(bars, [Table("compose", "Ten sources of 20 ms composed into one answer", "ms", lines)])
