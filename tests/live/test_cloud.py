"""From a data centre, which some upstreams refuse: every free endpoint still has data, from others."""

from collections.abc import Iterator

import httpx
import pytest

from tests.live.processes import UNLIMITED, Program, started
from toolserver.registry.registry import Registry, Tier

pytestmark = pytest.mark.live

FREE = [o for o in Registry.load("tools") if o.tier is Tier.FREE and o.method == "GET" and o.sources]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The demo where every host that refuses data centres does so."""
    with started("demo", folder=tmp_path_factory.mktemp("cloud"), **UNLIMITED) as program:
        httpx.put(f"{program.ready['world_url']}/_sim/scenario", json={"name": "cloud"}).raise_for_status()
        yield program


def test_no_free_endpoint_is_null_where_data_centres_are_refused(cloud):
    answers = {o.name: httpx.get(cloud.url + o.path, timeout=30) for o in FREE if "{" not in o.path}
    bodies = {name: answer.json() for name, answer in answers.items()}
    refused = {s["name"] for body in bodies.values() for s in body["_meta"]["sources"] if s["status"] == "error"}

    assert {answer.status_code for answer in answers.values()} == {200}
    assert [name for name, body in bodies.items() if body.get("data", body.get("sections")) is None] == []
    assert any(name.startswith(("BinanceFutures", "Bybit", "Dydx")) for name in refused)
