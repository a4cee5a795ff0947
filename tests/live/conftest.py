"""Running programs that several live tests share. Who sets faults starts a world of its own."""

from collections.abc import Iterator

import pytest

from tests.live.processes import UNLIMITED, Program, started


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The demo, without limits."""
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program
