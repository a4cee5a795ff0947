"""Measure row 23: how long our own pacing delays a caller, against upstreams that answer at once.

A server without cached answers gets a call of every free and paid tool that takes no argument, one after the other, as
a visitor would make them. The same calls follow when the answers are cached, and after a restart.
"""

import http.client
import tempfile
import time
from pathlib import Path

from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.processes import Server, python, started
from toolserver.registry.registry import Operation, Registry

SLOW_S, MOST_S, SETTLE_S, LATER_S = 1.0, 1.5, 2.0, 20.0
SETTINGS = {"TOOLSERVER_LIMITS__ENABLED": "false", "TOOLSERVER_LOGS__LEVEL": "error"}


def tools_without_arguments() -> list[Operation]:
    """Return the tools that can be called by GET without arguments and read from upstreams."""
    return [o for o in Registry.load("tools") if o.method == "GET" and o.sources and not o.input_schema.get("required")]


def ask_all(server: Server, tools: list[Operation]) -> dict[str, float]:
    """Return the seconds that each tool took. A refusal for missing data counts as an answer; other statuses raise."""
    took: dict[str, float] = {}
    headers = {"authorization": f"Bearer {server.ready['token']}"}
    for operation in tools:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        begun = time.perf_counter()
        connection.request("GET", operation.path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        took[operation.name] = time.perf_counter() - begun
        if answer.status not in (200, 503):
            raise SystemExit(f"{operation.name} was answered with {answer.status}")
    return took


def judge(effort: Effort) -> Verdict:
    """Measure a new server, and the same one after a restart."""
    tools = tools_without_arguments()
    with tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name:
        command = python(
            "-m", "toolserver", "demo", "--port", "0", "--ready-json", "--data-dir", str(Path(name, "data"))
        )
        with started(command, **SETTINGS) as server:
            time.sleep(SETTLE_S)
            first = ask_all(server, tools)
            time.sleep(LATER_S)
            later = ask_all(server, tools)
    free = [operation.name for operation in tools if not operation.credits]
    slow = [name for name, seconds in later.items() if seconds >= SLOW_S]
    longest = max(free, key=lambda name: first[name])
    bars = [
        Bar(23, f"tools of {len(tools)} that take a second, asked before: {', '.join(slow) or 'none'}", len(slow), 0),
        Bar(23, f"the longest first answer of a free tool: {longest}", first[longest], MOST_S, "s"),
    ]
    worst = sorted(first, key=lambda name: -first[name])[:12]
    lines = [
        Line(name, took[name], took[name], took[name], when)
        for when, took in (("first", first), ("later", later))
        for name in worst
    ]
    return Verdict(bars, [Table("pacing", "The slowest first answers, and the same later", "s", lines)])
