"""A service that strangers attack: a demo, one for each file of tests that asks for it."""

from collections.abc import Iterator

import httpx
import pytest

from tests.live.processes import Program, started


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("attacked")) as program:
        yield program


@pytest.fixture
def client(service: Program) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=20, trust_env=False) as client:
        yield client
