"""Other people's programs that live tests run: clients in other languages and versions."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.live.processes import ROOT

CLIENTS = Path(__file__).resolve().parent / "clients"
NODE = CLIENTS / "node_modules" / "node" / "bin" / "node"
PYTHON_1 = CLIENTS / ".venv-mcp1" / "bin" / "python"
TOOLSERVER = Path(sys.executable).with_name("toolserver")


def missing(what: str) -> NoReturn:
    """Skip, or fail where everything is required."""
    if os.environ.get("REQUIRE") == "all":
        pytest.fail(f"{what} is missing, and REQUIRE=all", pytrace=False)
    pytest.skip(f"{what} is missing: run `make clients`")


def installed(*paths: Path) -> None:
    """Go on only when these are installed."""
    for path in paths:
        if not path.exists():
            missing(str(path.relative_to(ROOT)))


def ran(*command: Any, timeout: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """A finished program and what it said."""
    env = os.environ | {"NO_COLOR": "1"} | environment
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, cwd=CLIENTS, env=env, check=False)


def told(*command: Any, **named: Any) -> Any:
    """The JSON that a client program prints."""
    done = ran(*command, **named)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
