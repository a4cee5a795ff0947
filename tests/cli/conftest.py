"""Commands run as on a machine without settings."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolserver.settings import KEYS, PREFIX


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings of the person who runs the tests: their environment, and the file in their directory."""
    for name in list(os.environ):
        if name.startswith(PREFIX) or name in KEYS:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[logging.Logger]:
    """The logger as it was: a command sets up logs for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:], root.level = handlers, level
