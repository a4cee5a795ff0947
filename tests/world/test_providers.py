"""Loading the simulated providers of packages of tools."""

import sys

import pytest

from toolserver.world.model import ROUTES
from toolserver.world.providers import load_providers

HARBOUR = """
from toolserver.world.model import Ask, Reply, World, serves

@serves("Harbour.test_levels", "levels.example", "/")
def levels(world: World, ask: Ask) -> Reply:
    raise NotImplementedError
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    for name, text in {
        "simulating/__init__.py": "",
        "simulating/simulated/__init__.py": "",
        "simulating/simulated/harbour.py": HARBOUR,
        "plain/__init__.py": "",
        "single.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    routes = list(ROUTES.all)
    yield
    ROUTES.all[:] = routes
    for name in [name for name in sys.modules if name.split(".")[0] in ("simulating", "plain", "single")]:
        del sys.modules[name]


@pytest.mark.usefixtures("packages")
def test_every_module_of_a_packages_simulated_part_is_imported_and_others_simulate_nothing():
    load_providers(["plain", "single", "simulating"])

    assert "Harbour.test_levels" in {route.source for route in ROUTES.all}


@pytest.mark.usefixtures("packages")
def test_a_package_that_simulates_nothing_is_passed_over():
    before = list(ROUTES.all)
    load_providers(["plain"])

    assert before == ROUTES.all
