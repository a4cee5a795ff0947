"""Sources and tools are asked once while all is recorded, without the disk and without a shop."""

import json

import pytest

from tests.calls.parts import START
from tests.calls.toy import FIRST, REGISTRY, SECOND
from tests.internet import Internet
from toolserver.app import Service, ServiceParts
from toolserver.cli.doctor import record_service, record_sources
from toolserver.cli.source_recording import FolderInUse, SourceRecording
from toolserver.clock import ManualClock
from toolserver.core.recorded_exchange import read_exchanges, read_summary
from toolserver.settings import Settings, SourceSettings

KEY = "canary-0123456789abcdef"


@pytest.fixture
def internet():
    """The network of a service with the three tools on two sources."""
    internet = Internet()
    internet.serves(FIRST, {"value": 2, "said": f"your key is {KEY}"})
    internet.serves(SECOND, {"worth": 3})
    return internet


async def record(internet, folder, settings=None):
    """Record the sources and tools of a service that stores nothing."""
    recording = SourceRecording(folder, (settings or Settings()).keys)
    parts = ServiceParts(
        registry=REGISTRY,
        clock=ManualClock(START),
        transport=internet.transport,
        record=recording.record,
        in_memory=True,
        background=False,
    )
    async with Service.build(settings or Settings(), parts) as service:
        return await record_service(service, recording)


async def test_every_source_is_asked_once_and_then_what_only_tools_ask(internet, tmp_path):
    found = await record(internet, tmp_path / "rec")
    assert [(probe.source, probe.verdict) for probe in found.probes] == [("Test.one", "ok"), ("Test.two", "unreadable")]
    assert found.tools == {"number": "ok", "premium_report": "ok", "hasty": "ok"}
    assert len(internet.urls(FIRST)) == 1  # the tools found what the probe had asked
    summary = read_summary(tmp_path / "rec")
    assert (summary["recorded_at"], summary["exchanges"], summary["tools"]) == (
        START.timestamp(),
        found.exchanges,
        found.tools,
    )
    assert [each["verdict"] for each in summary["sources"]] == ["ok", "unreadable"]
    assert len(list(read_exchanges(tmp_path / "rec"))) == found.exchanges == len(internet.asked)


async def test_no_key_is_in_a_recording(internet, tmp_path):
    settings = Settings(sources=SourceSettings(keys={"FRED_API_KEY": KEY}))
    await record(internet, tmp_path / "rec", settings)
    files = [path for path in (tmp_path / "rec").rglob("*") if path.is_file()]
    assert any(b"your key is sim-removed" in path.read_bytes() for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


async def test_a_tool_without_data_is_told(internet, tmp_path):
    internet.serves(FIRST, {"worth": 3})
    found = await record(internet, tmp_path / "rec")
    assert found.tools["number"] == "no data"
    assert {probe.verdict for probe in found.probes} == {"unreadable"}


async def test_what_upstreams_announce_is_in_the_summary(internet, tmp_path):
    import httpx

    internet.serves(FIRST, httpx.Response(200, json={"value": 1}, headers={"sunset": "Fri, 01 May 2026 00:00:00 GMT"}))
    found = await record(internet, tmp_path / "rec")
    assert [(each.source, each.kind) for each in found.announced] == [("Test.one", "sunset")]
    assert json.loads((tmp_path / "rec" / "recording.json").read_text())["announcements"][0]["kind"] == "sunset"


async def test_a_folder_in_use_is_refused_before_anything_is_requested(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(FolderInUse):
        await record_sources(Settings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
