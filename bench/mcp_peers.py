"""Measure, beside rows 3 to 5, a tool call of other kinds of servers: the TypeScript SDK, mcpo and fastapi-mcp.

Each sends the same payload and is started as its documentation says: mcpo serves an MCP server over REST, fastapi-mcp
serves a FastAPI application over MCP, both under uvicorn, the only server they have. There is no bar, only a table.
`make peers` installs them. Peers that are not installed are left out, and the table says so.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from bench.hot_path import BEHIND_PROXY, CALL, EVERYTHING_ON, REST, Stacks
from bench.judge import Effort, Table, Verdict
from bench.load import FRESH, run
from bench.pairs import Pair, Samples, measure_pairs, ratio_of
from bench.processes import CORES, Server, started
from bench.rows import LEGACY, call_side, get, lines_of, post

HERE = Path(__file__).parent
PYTHON = HERE / ".venv-peers-mcp1" / "bin" / "python"
MODULES = HERE / "node_modules"
LABELS = {
    "typescript": "TypeScript SDK, MCP tools/call",
    "fastapi-mcp": "fastapi-mcp, MCP tools/call",
    "mcpo": "mcpo, REST; its MCP server not counted",
}
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


def find_commands(python: Path = PYTHON, modules: Path = MODULES) -> Iterator[tuple[str, list[str]]]:
    """Return the command that starts each installed peer."""
    if modules.exists() and (node := shutil.which("node")):
        yield "typescript", [node, str(HERE / "stacks" / "typescript.mjs")]
    if python.exists():
        for name in ("fastapi-mcp", "mcpo"):
            yield name, [str(python), str(HERE / "stacks" / "mcp_peers.py"), name]


def begin_session(server: Server) -> str:
    """Begin the session that a server requires."""
    greeting = Request(f"{server.url}/api/mcp", json.dumps(GREETING).encode(), LEGACY)
    with urlopen(greeting) as response:
        return str(response.headers["mcp-session-id"])


def request_of(name: str, server: Server) -> bytes:
    """Return the request for a peer."""
    if name == "mcpo":
        return post("/btc_price", {})
    version = {"mcp-protocol-version": "2025-06-18"}
    if name != "fastapi-mcp":
        return post("/api/mcp", CALL, **version)
    placeholder = "0" * 32  # as long as the value that replaces it: ids of one session differ
    call = post("/api/mcp", CALL | {"id": placeholder}, **version | {"mcp-session-id": begin_session(server)})
    return call.replace(placeholder.encode(), FRESH.encode())


def compare_peers(effort: Effort) -> Samples:
    """Compare each installed peer with ours under uvicorn."""
    core = CORES[0] if len(CORES) > 1 else None
    with ExitStack() as stack:
        stacks = Stacks("uvicorn", stack)
        deployed = stacks.service("deployed", **EVERYTHING_ON)
        payload, _, _ = stacks.keep_replies(deployed)
        mcp = post("/api/mcp", CALL, **BEHIND_PROXY)
        ours = call_side("MCP tools/call, everything on", deployed, mcp, effort.requests)
        rest = call_side("REST hit, everything on", deployed, get(REST, **BEHIND_PROXY), effort.requests)
        peers = [rest]
        for name, command in find_commands():
            peer = stack.enter_context(started(command, core=core, PAYLOAD=str(payload)))
            asyncio.run(run(peer.port, request_of(name, peer), total=1, connections=1))
            peers.append(call_side(LABELS[name], peer, request_of(name, peer), effort.requests // 4))
        pairs = [Pair(peer.name, (peer, ours), ratio_of("cpu_us"), is_judged=False) for peer in peers]
        samples = asyncio.run(measure_pairs(pairs, effort.pairs // 2))
    return {side.name: samples[side.name] for side in (ours, *peers)}


def judge(effort: Effort) -> Verdict:
    """Measure the installed peers."""
    samples = compare_peers(effort)
    missing = [label for label in LABELS.values() if label not in samples]
    note = "One core for the server, 32 kept connections; the TypeScript SDK under Node's own HTTP server."
    if missing:
        note += f" Not installed, so not measured: {'; '.join(missing)}."
    lines = lines_of(samples, "uvicorn")
    title = "A tool call of other kinds of servers: CPU of the server"
    table = Table("mcp-peers", title, "µs a call", lines, note, False, tuple(LABELS.values()))
    return Verdict(tables=[table])
