"""Measure rows 15, 16 and 17: the time from the spawn to the first answer, and the memory of an idle server."""

import asyncio
import importlib.util
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.pairs import PIECE, Pair, Side, measure_pairs, reference_of
from bench.processes import SAME_HASHES, first_answer_s, python, started, waited_s

FIRST_S, STDIO_S, IDLE_MB = 0.5, 0.1, 75
WITH_DEV_EXTRAS = 1.2  # the bars of both times are for an environment with only the requirements of `serve`
LATE = ("web3", "mcp", "fastmcp", "fastapi", "httpx", "aiohttp", "asyncpg", "redis", "jinja2")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
LOADED = """
import os, sys, threading
from toolserver.cli.main import main

def tell():
    names = {names!r}
    found = sorted({{name.partition(".")[0] for name in list(sys.modules)}} & set(names))
    with open({path!r}, "w") as file:
        file.write(" ".join(found))

threading.Timer(3.0, tell).start()
main()
"""


def stdio_s(folder: str, **environment: str) -> float:
    """Return the seconds from the spawn of `toolserver stdio` to its answer, less those that it waited for a core."""
    begun = time.perf_counter()
    command = python("-m", "toolserver", "stdio", "--data-dir", folder)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, **SAME_HASHES, **environment}, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        took = time.perf_counter() - begun - waited_s(process.pid)
        process.stdin.close()
        process.wait(20)
    if "result" not in answer:
        raise SystemExit(f"stdio answered {answer}")
    return took


def list_loaded(folder: Path, **environment: str) -> list[str]:
    """Return the late libraries that an idle server has loaded three seconds after its start."""
    told, script = folder / "loaded", folder / "serve.py"
    script.write_text(LOADED.format(names=LATE, path=str(told)), encoding="utf-8")
    command = python(str(script), "serve", "--port", "0", "--ready-json", "--data-dir", str(folder / "data"))
    with started(command, **environment):
        time.sleep(4)
    return told.read_text(encoding="utf-8").split()


def compare_starts(command: list[str], folder: str, count: int, **environment: str) -> list[Pair]:
    """Measure both starts against a fixed piece of work, after one that fills the caches of the disk."""
    starts = {
        "serve: first answer": lambda: {"s": first_answer_s(command, "/api/health", **environment)},
        "stdio: initialize": lambda: {"s": stdio_s(folder, **environment)},
    }
    pairs = [Pair(name, (PIECE, Side(name, start)), reference_of("s")) for name, start in starts.items()]
    for pair in pairs:
        pair.sides[1].measure()
    asyncio.run(measure_pairs(pairs, count))
    return pairs


def judge(effort: Effort) -> Verdict:
    """Start servers, one after the other."""
    with tempfile.TemporaryDirectory() as folder, started(python("-m", "toolserver", "world", "--port", "0")) as world:
        via = {"TOOLSERVER_UPSTREAM__VIA": f"http://127.0.0.1:{world.port}", "TOOLSERVER_LOGS__LEVEL": "error"}
        command = python("-m", "toolserver", "serve", "--port", "0", "--ready-json", "--data-dir", f"{folder}/serve")
        serve, stdio = compare_starts(command, f"{folder}/stdio", effort.pairs // 2, **via)
        with started(command, **via) as server:
            memory = server.memory_mb()
        loaded = list_loaded(Path(folder), **via)
    more = WITH_DEV_EXTRAS if importlib.util.find_spec("fastmcp") else 1.0
    bars = [
        Bar.of_pair(serve, 15, FIRST_S * more, "s"),
        Bar.of_pair(stdio, 15, STDIO_S * more, "s"),
        Bar(16, "an idle server", memory, IDLE_MB, "MB"),
        Bar(17, f"loaded too early: {', '.join(loaded) or 'nothing'}", len(loaded), 0),
    ]
    lines = [
        Line.of_values("serve, first answer over HTTP", serve.figures),
        Line.of_values("stdio, initialize", stdio.figures),
    ]
    return Verdict(bars, [Table("start", "From the spawn to the first answer", "s", lines)])
