"""What `doctor --record` keeps of a world, `world --replay` gives back: the same answers, and no key anywhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.processes import control, ran, started

pytestmark = [pytest.mark.live, pytest.mark.timeout(180), pytest.mark.slow("every source is asked at its own pace")]

KEYS = {
    "FRED_API_KEY": "sim-canary-fred-0123456789",
    "FINNHUB_API_KEY": "sim-canary-finnhub-0123456789",
    "FIRMS_MAP_KEY": "sim-canary-firms-0123456789",
    "GITHUB_TOKEN": "sim-canary-github-0123456789",
    "ETHERSCAN_API_KEY": "sim-canary+etherscan/0123456789",
}
CALLS = ("earthquakes", "forex", "service_status", "launches", "gas", "climate_weather_alerts", "internet_pulse")
TIMES = {"generated_at", "_meta", "captured_at", "source", "fetched_at"}


def answers(folder: Path, via: str) -> dict[str, Any]:
    """What the tools answer on a world, apart from when and how they were asked."""
    found = {}
    for name in CALLS:
        done = ran("call", name, "--json", folder=folder, TOOLSERVER_UPSTREAM__VIA=via, **KEYS)
        assert done.returncode == 0, done.stderr
        found[name] = json.loads(done.stdout)
    return found


def without_times(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in TIMES}


def test_a_recording_gives_the_same_answers_again(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    with started("world", "--seed", "7", folder=tmp_path) as world, control(world.url) as sim:
        sim.put("clock", {"freeze": True})
        before = answers(tmp_path, world.url)
        sim.fault("Slack.*", "announce", sunset="Fri, 01 Jan 2100 00:00:00 GMT")
        sim.fault("Coinlore.*", "drift", form="renamed")
        sim.fault("Reddit.*", "geo")
        done = ran(
            "doctor",
            "--live",
            "--record",
            str(recording),
            folder=tmp_path,
            within_s=150,
            TOOLSERVER_UPSTREAM__VIA=world.url,
            **KEYS,
        )
    said = done.stdout.decode()
    assert done.returncode == 1, said + done.stderr.decode()
    lines = {line.split()[0]: line for line in said.splitlines() if "." in line.partition(" ")[0]}
    assert "Slack.current_status" in said
    assert "announces sunset: Fri, 01 Jan 2100" in said
    assert " unreadable " in lines["Coinlore.tickers"]
    assert "    ! data: absent (parse fails)" in said
    assert " refused " in lines["Reddit.stocks_rss"]
    assert " ok " in lines["FRED.observations"]
    assert_no_key(recording)
    with started("world", "--replay", str(recording), folder=tmp_path) as replay, control(replay.url) as sim:
        after = answers(tmp_path, replay.url)
        missing = sim.get("unmatched")
    assert {name: without_times(after[name]) for name in CALLS} == {name: without_times(before[name]) for name in CALLS}
    assert missing == []


def assert_no_key(recording: Path) -> None:
    files = [path for path in recording.rglob("*") if path.is_file()]
    assert len(files) > 200
    assert any(b"sim-removed" in path.read_bytes() for path in files)
    for path in files:
        assert b"canary" not in path.read_bytes() + path.name.encode(), path
