"""A demo, a model for each conversation, and the table at the end of a run."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.extras import without_extra
from tests.hosts.hosts import HOSTS, MODULES, PYTHON, Door, Host
from tests.hosts.model_server import ModelServer, Player
from tests.hosts.tables import Row, write_table
from tests.live.processes import UNLIMITED, Program, started
from tests.live.programs import TOOLSERVER
from tests.surroundings import SEEN

ROW = "host row"
Report = Callable[[Row], None]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the table of everything that tests reported."""
    passed_and_failed = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    rows = [Row(*row) for one in passed_and_failed for name, row in one.user_properties if name == ROW]
    for line in write_table(rows):
        terminalreporter.write_line(line)


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Report:
    """Adds a line to the table."""
    return lambda row: record_property(ROW, list(row))


@pytest.fixture(scope="session", autouse=True)
def _no_real_key_is_in_sight() -> None:
    """A host that found a real key would spend money and show the tests to its provider."""
    if names := os.environ.get(SEEN):
        pytest.fail(f"real hosts do not run where keys of model providers are set: unset {names}", pytrace=False)


@pytest.fixture(scope="session")
def installed() -> None:
    """Go on only where the hosts are installed."""
    if not (PYTHON.exists() and all(host.program.exists() for host in HOSTS) and MODULES.is_dir()):
        without_extra("HOSTS")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The demo, without limits."""
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


def door_to(program: Program, transport: str, *, whole: bool = False) -> Door:
    """Return how a host reaches a program. An address lists the core of the tools, or the `whole`; over a bridge the
    program offers what suits the name of the host.
    """
    if transport == "bridge":
        return Door(transport, command=(str(TOOLSERVER), "stdio", "--server", program.url))
    address = program.ready["mcp_url"] + ("/auth" if transport == "oauth" else "")
    return Door(transport, url=address + ("?toolset=all" if whole else ""), token=program.ready["token"])


@pytest.fixture
def open_host(tmp_path: Path, installed: None) -> Iterator[Callable[[type[Host], Door, Player], Host]]:
    """Opens a host whose model a function plays. When the test ends, nothing must have gone wrong in the model."""
    with ExitStack() as stack:
        models = []

        def opened(host: type[Host], door: Door, player: Player) -> Host:
            model = ModelServer(player)
            models.append(model)
            stack.callback(model.close)
            return stack.enter_context(host(tmp_path, model, door))

        yield opened
    assert [fault for model in models for fault in model.faults] == []
