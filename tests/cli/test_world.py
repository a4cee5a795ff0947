"""`toolserver world`: where it serves the simulated upstreams, and what it says if it cannot."""

import os
import signal

import anyio
import httpx
import pytest

from toolserver.cli.world import world_command
from toolserver.serving.listen import bind_socket
from toolserver.settings import Settings


async def test_a_world_whose_port_is_taken_ends_with_a_sentence():
    with bind_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match=f"cannot listen on 127.0.0.1, port {port}"):
            await world_command(Settings(), host="127.0.0.1", port=port, seed=1)


async def test_a_world_announces_its_address_and_runs_until_a_signal():
    announced, facts = anyio.Event(), {}

    def announce(**named):
        facts.update(named)
        announced.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient() as client:
            tasks.start_soon(lambda: world_command(Settings(), host="127.0.0.1", port=0, seed=1, publish=announce))
            await announced.wait()
            url = f"{facts['world_url']}/u/earthquake.usgs.gov/earthquakes/feed/v1.0/summary/2.5_day.geojson"
            quakes = await client.get(url)
            os.kill(os.getpid(), signal.SIGTERM)
    assert quakes.json()["type"] == "FeatureCollection"


async def test_a_folder_that_is_no_recording_ends_with_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match="is not a recording made by"):
        await world_command(Settings(), host="127.0.0.1", port=0, seed=1, replay=tmp_path)
