"""Measure row 6: a cached answer with everything on against web frameworks with the same bytes and policies.

The policies of the peers follow their documentation: CORS, a limit by address, an id for each request, ETag and 304.
FastAPI and Litestar are not among our requirements: `make peers` installs them beside ours.
"""

import asyncio
from contextlib import ExitStack
from pathlib import Path

from bench.hot_path import BEHIND_PROXY, EVERYTHING_ON, REST, Stacks
from bench.judge import Bar, Effort, NotHere, Table, Verdict
from bench.pairs import Pair, Samples, measure_pairs, ratio_of
from bench.processes import CORES, started
from bench.rows import call_side, get, lines_of

PEERS = Path(__file__).with_name(".venv-peers") / "bin" / "python"
STACKS = {"fastapi": "FastAPI", "starlette": "Starlette", "litestar": "Litestar", "nginx": "nginx, a file"}
LEAST = {"hypercorn": 1.4, "uvicorn": 5.0}
OURS = "toolserver, everything on"


def compare_frameworks(kind: str, effort: Effort) -> tuple[Pair, Samples]:
    """Compare each framework under one HTTP server with our service. Return the pair with FastAPI, and all samples."""
    with ExitStack() as stack:
        stacks = Stacks(kind, stack)
        deployed = stacks.service("deployed", **EVERYTHING_ON)
        payload, _, _ = stacks.keep_replies(deployed)
        request = get(REST, **BEHIND_PROXY)
        ours = call_side(OURS, deployed, request, effort.requests)
        script = Path(__file__).parent / "stacks" / "frameworks.py"
        core = CORES[0] if len(CORES) > 1 else None
        pairs = dict[str, Pair]()
        for name, label in STACKS.items():
            command = [str(PEERS), str(script), name, kind]
            server = stack.enter_context(started(command, core=core, PAYLOAD=str(payload)))
            peer = call_side(label, server, request, effort.requests // (1 if name == "nginx" else 2))
            is_judged = name == "fastapi"
            pairs[name] = Pair(f"REST hit, everything on / {label}", (peer, ours), ratio_of("cpu_us"), is_judged)
        samples = asyncio.run(measure_pairs(list(pairs.values()), effort.pairs))
    return pairs["fastapi"], {name: samples[name] for name in (OURS, *STACKS.values())}


def judge(effort: Effort) -> Verdict:
    """Measure under each HTTP server. Raises NotHere without the peers."""
    if not PEERS.exists():
        raise NotHere("FastAPI is not here: `make peers` installs it")
    found, lines = Verdict(), []
    for kind in effort.servers:
        pair, samples = compare_frameworks(kind, effort)
        found.bars.append(Bar.of_pair(pair, 6, LEAST[kind], "x", at_least=True, server=kind))
        lines += lines_of(samples, kind)
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
