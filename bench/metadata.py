"""Measure row 24: how many bytes of the nine core answers state the origin of the data, and how many are the data."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from bench.in_process import request, settings_for
from bench.judge import Bar, Effort, Line, Table, Verdict
from bench.processes import python, started
from toolserver.app import Service, ServiceParts
from toolserver.registry.registry import Tier

IN_ALL, OF_ONE = 0.15, 0.40


async def answer_of(app: Any, path: str) -> bytes:
    """Return the body of an answer. Raises SystemExit for another status than 200."""
    parts: list[bytes] = []
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(event: dict[str, Any]) -> None:
        nonlocal status
        status = event.get("status", status)
        parts.append(event.get("body", b""))

    await app(request(path), receive, send)
    if status != 200:
        raise SystemExit(f"{path} was answered with {status}")
    return b"".join(parts)


async def weigh(folder: Path, via: str) -> dict[str, tuple[int, int]]:
    """Return the bytes of `_meta` and of the whole answer, by tool."""
    found = {}
    parts = ServiceParts(base_url="http://127.0.0.1", background=False)
    async with Service.build(settings_for(folder, via, enabled=False), parts) as service:
        app = service.web_app()
        for operation in service.registry.chosen(toolset="core"):
            if operation.tier is Tier.FREE and operation.sources:
                body = await answer_of(app, operation.path)
                meta = json.loads(body).get("_meta")
                written = json.dumps(meta, separators=(",", ":"), ensure_ascii=False).encode()
                found[operation.name] = len(written) + len(b',"_meta":'), len(body)
    return found


def judge(effort: Effort) -> Verdict:
    """Measure the answers of the simulated world."""
    with (
        tempfile.TemporaryDirectory(prefix="toolserver-bench-") as name,
        started(python("-m", "toolserver", "world", "--port", "0")) as world,
    ):
        found = asyncio.run(weigh(Path(name), f"http://127.0.0.1:{world.port}"))
    shares = {name: meta / whole for name, (meta, whole) in found.items()}
    in_all = sum(meta for meta, _ in found.values()) / sum(whole for _, whole in found.values())
    worst = max(shares, key=lambda name: shares[name])
    bars = [
        Bar(24, f"_meta of {len(found)} core answers", in_all * 100, IN_ALL * 100, "%"),
        Bar(24, f"_meta of {worst}", shares[worst] * 100, OF_ONE * 100, "%"),
    ]
    lines = [
        Line(name, each * 100, each * 100, each * 100) for name, each in sorted(shares.items(), key=lambda i: -i[1])
    ]
    return Verdict(bars, [Table("metadata", "The share of _meta in the core answers", "% of the bytes", lines)])
