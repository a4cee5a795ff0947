"""Measure row 6: a cached answer with everything on against web frameworks with the same bytes and policies.

The policies of the peers follow their documentation: CORS, a limit by address, an id for each request, ETag and 304.
FastAPI and Litestar are not among our requirements: `make peers` installs them beside ours.
"""

from contextlib import ExitStack
from pathlib import Path

from bench.hot_path import BEHIND_PROXY, EVERYTHING_ON, REST, Stacks
from bench.judge import Bar, Effort, NotHere, Table, Verdict
from bench.processes import CORES, started
from bench.rows import Row, get, lines_of, measure

PEERS = Path(__file__).with_name(".venv-peers") / "bin" / "python"
STACKS = {"fastapi": "FastAPI", "starlette": "Starlette", "litestar": "Litestar", "nginx": "nginx, a file"}
LEAST = {"hypercorn": 1.4, "uvicorn": 5.0}
OURS = "toolserver, everything on"


def measure_frameworks(kind: str, effort: Effort) -> dict[str, Row]:
    """Measure our service and each framework under one HTTP server, in turn."""
    with ExitStack() as stack:
        stacks = Stacks(kind, stack)
        deployed = stacks.service("deployed", **EVERYTHING_ON)
        payload, _, _ = stacks.keep_replies(deployed)
        request = get(REST, **BEHIND_PROXY)
        runs = [(OURS, deployed)]
        script = Path(__file__).parent / "stacks" / "frameworks.py"
        core = CORES[0] if len(CORES) > 1 else None
        for name, label in STACKS.items():
            command = [str(PEERS), str(script), name, kind]
            runs.append((label, stack.enter_context(started(command, core=core, PAYLOAD=str(payload)))))
        rows = {name: Row(name) for name, _ in runs}
        for _ in range(effort.rounds):
            for name, server in runs:
                measure(
                    rows[name],
                    server,
                    request,
                    effort.requests if name in (OURS, "nginx, a file") else effort.requests // 4,
                )
    return rows


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server. Raises NotHere without the peers."""
    if not PEERS.exists():
        raise NotHere("FastAPI is not here: `make peers` installs it")
    found, lines = Verdict(), []
    for kind in effort.servers:
        rows = measure_frameworks(kind, effort)
        times = rows["FastAPI"].cpu / rows[OURS].cpu
        found.bars.append(
            Bar(6, "REST hit, everything on / FastAPI", times, LEAST[kind], "x", at_least=True, server=kind)
        )
        lines += lines_of(rows.values(), kind)
    note = "The same bytes with CORS, a limit by address, a request id and ETag; nginx sends a file without any of it."
    table = Table(
        "frameworks",
        "A cached answer from web frameworks: CPU of the server",
        "µs a call",
        lines,
        note,
        False,
        tuple(STACKS.values()),
    )
    found.tables.append(table)
    return found
