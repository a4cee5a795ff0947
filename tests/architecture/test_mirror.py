"""Every module of the engine and its faces has a test file of its name in the mirrored place of tests/."""

from pathlib import Path

from tests.architecture.code import FILES, ROOT

MIRRORED = {"toolserver": "tests", "rest_bridge": "tests/rest_bridge", "catalog": "tests/catalog"}
WITHOUT = {"__init__"}


def place_of_tests(path: Path) -> Path:
    """Where the tests of a module are looked for."""
    package, *folders, name = path.relative_to(ROOT).parts
    return ROOT.joinpath(MIRRORED[package], *folders, f"test_{name}")


def test_each_module_has_a_test_file_of_its_name():
    missing = {
        place_of_tests(path).relative_to(ROOT).as_posix()
        for path in FILES.values()
        if path.relative_to(ROOT).parts[0] in MIRRORED
        and path.stem not in WITHOUT
        and not place_of_tests(path).exists()
    }

    assert missing == set()
