"""Measure row 25: the cost of a call over 1,000 connections compared with 32, ours and a bare app's under the same
server.
"""

import asyncio
from contextlib import ExitStack

from bench.hot_path import BEHIND_PROXY, EVERYTHING_ON, REST, Stacks
from bench.judge import Bar, Effort, Table, Verdict
from bench.pairs import Pair, Sample, Samples, measure_pairs, ratio_of
from bench.rows import call_side, get, lines_of

COUNTS = (1, 32, 256, 1000)
MOST = 1.1
OTHERS = tuple(f"bare app, {count:,}" for count in COUNTS)


def growth(many: Sample, few: Sample, bare_many: Sample, bare_few: Sample) -> float:
    """Return by how much more our calls cost over many connections than over few, as a multiple of the bare app's."""
    return (many["cpu_us"] / few["cpu_us"]) / (bare_many["cpu_us"] / bare_few["cpu_us"])


def compare_connections(kind: str, effort: Effort) -> tuple[Pair, Samples]:
    """Compare ours and a bare app over each number of connections. Return the judged comparison, and all samples."""
    with ExitStack() as stack:
        stacks = Stacks(kind, stack)
        deployed = stacks.service("deployed", **EVERYTHING_ON)
        payload, rest, _ = stacks.keep_replies(deployed)
        request = get(REST, **BEHIND_PROXY)
        servers = {"everything on": deployed, "bare app": stacks.peer("bare", payload=payload, reply=rest)}
        sides = {
            (name, count): call_side(
                f"{name}, {count:,}",
                server,
                request,
                effort.requests // 4 if count == 1 else max(effort.requests, 2 * count),
                connections=count,
            )
            for count in COUNTS
            for name, server in servers.items()
        }
        four = [sides[name, count] for name in servers for count in (1000, 32)]
        pair = Pair("CPU a call over 1,000 connections / 32, of the bare app's", four, growth)
        shown = [
            Pair(f"{count}", [sides[name, count] for name in servers], ratio_of("cpu_us"), is_judged=False)
            for count in (1, 256)
        ]
        samples = asyncio.run(measure_pairs([pair, *shown], effort.pairs // 2))
    return pair, {side.name: samples[side.name] for side in sides.values()}


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    found, lines, waits = Verdict(), [], []
    for kind in effort.servers:
        pair, samples = compare_connections(kind, effort)
        found.bars.append(Bar.of_pair(pair, 25, MOST, "x", server=kind))
        lines += lines_of(samples, kind)
        waits += lines_of(samples, kind, "p99_ms")
    note = "Kept connections, one request in flight on each."
    found.tables += [
        Table(
            "connections-cpu",
            "A cached answer by connections: CPU of the server",
            "µs a call",
            lines,
            note,
            False,
            OTHERS,
        ),
        Table("connections-p99", "The same: 99 of 100 callers wait at most", "ms", waits, note, False, OTHERS),
    ]
    return found
