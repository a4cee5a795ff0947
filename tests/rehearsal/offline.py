"""A machine that loses its network and gets it back, while an agent calls every tool over stdio.

`unshare --net --mount python -m tests.rehearsal.offline FOLDER` serves in a second network, whose only cable leads to
the upstreams and to a name server. It buys credits, pulls the cable, calls every tool of `toolserver stdio` with and
without stored answers, and plugs the cable in again. What it saw is written to `FOLDER/seen.json`.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.processes import environment, started
from tests.rehearsal.name_server import open_names
from tests.rehearsal.private_net import (
    ABOUT_ITSELF,
    MOMENT,
    buy,
    call_all,
    fronted,
    lead_here,
    list_hosts,
    settings_in,
)
from tests.rehearsal.walled_net import INSIDE, OUTSIDE, WALLED, run_inside, walled_net
from tests.served import all_tools
from toolserver.calls.arguments import example_call
from toolserver.registry.registry import Tier

STDIO = ["stdio", "--toolset", "all"]
MOST_TRIES, BETWEEN_S = 20, 0.5  # until the first good answer after the cable was plugged in


class Agent:
    """A client of MCP over stdio."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._id = process, 0

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        self._id += 1
        self._write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._id:
                return answer["result"]
        raise AssertionError("stdio ended")

    def begin(self) -> None:
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "rehearsal", "version": "1"},
        }
        self.ask("initialize", **about)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.call("find_tools", {"query": "prices"})  # by now the service is loaded

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool. Return how long it took, its warnings and error, its price, and whether it is marked stale."""
        began = time.monotonic()
        result = self.ask("tools/call", name=name, arguments=arguments)
        took_s = time.monotonic() - began
        body = result.get("structuredContent") or {}
        warnings = body.get("warning") or body.get("warnings") or []
        return {
            "took_s": took_s,
            "is_error": bool(result.get("isError")),
            "stale": body.get("stale"),
            "codes": sorted({warning["code"] for warning in warnings}),
            "text": result["content"][0]["text"][:300] if result.get("isError") else "",
            "charged": (result.get("_meta") or {}).get("credits_charged", 0),
        }

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


@contextmanager
def talking(folder: Path, settings: dict[str, str], log: Path) -> Iterator[Agent]:
    """An agent with `toolserver stdio` in the second network, until the block ends."""
    words = [sys.executable, "-m", walled_net.__module__, *STDIO]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            words,
            env=environment(settings, folder),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        agent = Agent(process)
        agent.begin()
        yield agent
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
        process.wait()
        process.stdout.close()


def call_every_tool(agent: Agent) -> dict[str, Any]:
    """Call each tool that reads sources as its own example says."""
    found = {}
    for operation in all_tools().listed:
        if operation.tier in (Tier.FREE, Tier.PREMIUM) and operation.name not in ABOUT_ITSELF:
            arguments = {name: value for name, value in example_call(operation)["arguments"].items() if name != MOMENT}
            found[operation.name] = {"tier": operation.tier.value, **agent.call(operation.name, arguments)}
    return found


def serve_names(names: dict[str, list[str]]) -> None:
    """Run a name server for the second network in a thread, as long as this process."""

    async def serve() -> None:
        async with open_names(names, OUTSIDE):
            await asyncio.Event().wait()

    threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()


def unplug(keeper: str) -> None:
    """Take the second network's only way out."""
    run_inside(keeper, "ip", "link", "set", "inside", "down")


def plug_in(keeper: str) -> None:
    """Give it the way out again, with the route that goes with it."""
    run_inside(keeper, "ip", "link", "set", "inside", "up")
    run_inside(keeper, "ip", "route", "replace", "default", "via", OUTSIDE)


def seen_in(folder: Path) -> dict[str, Any]:
    """Lose the network and get it back. Return every answer meanwhile, the log, and the tries until it was back."""
    hosts = list_hosts()
    lead_here(hosts, folder)
    with started("world", folder=folder) as world, fronted(world, hosts, folder), walled_net(folder) as keeper:
        serve_names({host: [OUTSIDE] for host in hosts})
        (folder / "resolv.conf").write_text(f"nameserver {OUTSIDE}\n")
        run_inside(keeper, "mount", "--bind", str(folder / "resolv.conf"), "/etc/resolv.conf")
        plug_in(keeper)
        data = folder / "data"
        settings = settings_in(folder) | {WALLED: keeper, "TOOLSERVER_DATA_DIR": str(data)}
        with started(
            "serve",
            folder=folder,
            forked=False,
            module=walled_net.__module__,
            **settings,
            TOOLSERVER_HOST=INSIDE,
        ) as service:
            token = buy(service, world)
            call_all(service, token)
        settings = {name: value for name, value in settings.items() if "PAYMENTS" not in name}
        settings["TOOLSERVER_TOKEN"] = token
        unplug(keeper)
        with talking(folder, settings, folder / "stored.log") as agent:
            stored = call_every_tool(agent)
        for path in data.glob("answers.sqlite3*"):
            path.unlink()
        with talking(folder, settings, folder / "empty.log") as agent:
            empty = call_every_tool(agent)
            plug_in(keeper)
            began, tries = time.monotonic(), 0
            while tries < MOST_TRIES:
                tries += 1
                answer = agent.call("btc_price", {})
                if answer["stale"] is False:
                    break
                time.sleep(BETWEEN_S)
            back_s = time.monotonic() - began
        logs = {name: (folder / f"{name}.log").read_text().splitlines() for name in ("stored", "empty")}
    return {"stored": stored, "empty": empty, "tries": tries, "back_s": back_s, "logs": logs}


if __name__ == "__main__":
    into = Path(sys.argv[1])
    (into / "seen.json").write_text(json.dumps(seen_in(into)))
