"""Call all sources and all tools once and record everything: what `doctor --live --record DIR` does."""

import json
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from toolserver.app import Service
from toolserver.cli.bridge import has_data
from toolserver.cli.in_process import local_service
from toolserver.cli.source_probe import Probe, probe_sources
from toolserver.cli.source_recording import SourceRecording
from toolserver.core.caller import Caller
from toolserver.errors import CallRejected
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.registry.registry import Operation, Tier
from toolserver.settings import Settings
from toolserver.upstream.announcements import Announcement
from toolserver.upstream.refusals import HostRefusal

CREDITS = 1000  # for a token that exists only in this process


class RecordedSources(NamedTuple):
    """The findings: each source's probe, what upstreams announced, which hosts refused, and the result of each tool.

    The result of a tool is `ok`, or the reason why it has no data.
    """

    probes: list[Probe]
    announced: list[Announcement]
    refused: list[HostRefusal]
    tools: dict[str, str]
    exchanges: int


async def record_sources(settings: Settings, folder: Path) -> RecordedSources:
    """Record every source's probe, then the further requests that the tools make with default arguments.

    The service used for this stores nothing and sells nothing. It does not read answers that a server has stored.

    Raises:
        FolderInUse: the folder is not empty.
    """
    recording = SourceRecording(folder, settings.keys)
    async with local_service(settings, in_memory=True, background=False, record=recording.record) as service:
        probes = await probe_sources(service, recording)
        tools = await _call_tools(service)
        announced = service.fetcher.announcements.list_all()
        found = RecordedSources(probes, announced, service.fetcher.refusals.list_all(), tools, recording.count)
        recording.finish(
            service.clock.time(),
            is_simulated=settings.upstream.via is not None,
            sources=[asdict(probe) | {"verdict": probe.verdict} for probe in probes],
            announcements=[each._asdict() for each in announced],
            tools=tools,
        )
    return found


async def _call_tools(service: Service) -> dict[str, str]:
    """Call every tool that uses upstream data once. The probes' answers are cached, so only other requests are sent."""
    token = f"svc_live_{secrets.token_hex(32)}"
    assert isinstance(service.money.ledger, MemoryLedger)
    service.money.ledger.fund(token, CREDITS)
    caller = Caller(client="doctor", token=token, transport="cli", limited=False, agent="toolserver-doctor")
    wanted = [o for o in service.registry if o.tier in (Tier.FREE, Tier.PREMIUM) and o.sources]
    return {operation.name: await _call_tool(service, operation, caller) for operation in wanted}


async def _call_tool(service: Service, operation: Operation, caller: Caller) -> str:
    try:
        outcome = await service.pipeline.call(operation, {}, caller)
    except CallRejected as rejected:
        return rejected.code
    return "ok" if has_data(json.loads(outcome.rendered.payload)) else "no data"
