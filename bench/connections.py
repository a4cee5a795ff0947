"""Measure row 25: the cost of a call over 1,000 connections compared with 32, ours and a bare app's under the same
server.
"""

from contextlib import ExitStack

from bench.hot_path import BEHIND_PROXY, EVERYTHING_ON, REST, Stacks
from bench.judge import Bar, Effort, Table, Verdict
from bench.rows import Row, get, lines_of, measure

COUNTS = (1, 32, 256, 1000)
MOST = 1.1
OTHERS = tuple(f"bare app, {count:,}" for count in COUNTS)


def measure_connections(kind: str, effort: Effort) -> dict[tuple[str, int], Row]:
    """Measure ours and a bare app over each number of connections, in turn."""
    with ExitStack() as stack:
        stacks = Stacks(kind, stack)
        deployed = stacks.service("deployed", **EVERYTHING_ON)
        payload, rest, _ = stacks.keep_replies(deployed)
        request = get(REST, **BEHIND_PROXY)
        servers = {"bare app": stacks.peer("bare", payload=payload, reply=rest), "everything on": deployed}
        rows = {(name, count): Row(f"{name}, {count:,}") for count in COUNTS for name in servers}
        for _ in range(effort.rounds):
            for (name, count), row in rows.items():
                requests = effort.requests // 4 if count == 1 else max(effort.requests, 4 * count)
                measure(row, servers[name], request, requests, connections=count)
    return rows


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server."""
    found, lines, waits = Verdict(), [], []
    for kind in effort.servers:
        rows = measure_connections(kind, effort)
        ours, bare = (rows[name, 1000].cpu / rows[name, 32].cpu for name in ("everything on", "bare app"))
        what = "CPU a call over 1,000 connections / 32, of the bare app's"
        found.bars.append(Bar(25, what, ours / bare, MOST, "x", server=kind))
        lines += lines_of(rows.values(), kind)
        waits += lines_of(rows.values(), kind, "p99_ms")
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
