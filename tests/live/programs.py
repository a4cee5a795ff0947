"""Other programs that live tests start: our own server, and clients in other languages."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = Path(__file__).resolve().parent / "clients"
NODE = CLIENTS / "node_modules" / "node" / "bin" / "node"
PYTHON_1 = CLIENTS / ".venv-mcp1" / "bin" / "python"
TOOLSERVER = Path(sys.executable).with_name("toolserver")
START_S = 30.0


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


@contextmanager
def toolserver(verb: str, *flags: str, data_dir: Path, **environment: str) -> Iterator[dict[str, Any]]:
    """A running server and its ready line; it must end with 0 when it is told to stop."""
    command = [TOOLSERVER, verb, "--ready-json", "--port", "0", "--data-dir", data_dir, *flags]
    env = os.environ | {"PYTHONPATH": str(ROOT), "TOOLSERVER_LOGS__LEVEL": "warning"} | environment
    with (data_dir.parent / f"{verb}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env, cwd=ROOT)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                pytest.fail(f"the server did not start:\n{Path(log.name).read_text()}")
            yield json.loads(line)
            process.terminate()
            assert process.wait(START_S) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close() if process.stdout else None


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
