"""The MCP bundle: judged by the host's own tool, unpacked by it, and started as a host does."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.processes import UNLIMITED, Program, ran, started
from tests.live.programs import CLIENTS, NODE, installed

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

MCPB = CLIENTS / "node_modules" / ".bin" / "mcpb"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


def test_it_is_valid_and_starts_the_bridge_to_a_service(program: Program, tmp_path: Path) -> None:
    installed(MCPB, NODE)
    written = ran("mcpb", "bundle.mcpb", "--server", program.url, folder=tmp_path)
    assert written.returncode == 0, written.stderr
    folder = tmp_path / "unpacked"
    for words in (["unpack", tmp_path / "bundle.mcpb", folder], ["validate", folder / "manifest.json"]):
        done = subprocess.run([MCPB, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stdout.lower()

    config = json.loads((folder / "manifest.json").read_text())["server"]["mcp_config"]
    assert config["args"][:3] == ["run", "--directory", "${__dirname}"]  # uv, which would install what it needs
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": sysconfig.get_path("purelib")}
    bare["TOOLSERVER_TOKEN"] = "${user_config.token}"  # as a host leaves it where nothing was entered
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "btc_price", "arguments": {}}},
    ]
    done = subprocess.run(
        [sys.executable, "-S", *config["args"][3:]],
        cwd=folder,
        env=bare,
        input="".join(json.dumps(message) + "\n" for message in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    answers = {each["id"]: each["result"] for each in map(json.loads, done.stdout.splitlines())}
    assert len(answers[1]["tools"]) == 21, done.stderr
    assert answers[2]["structuredContent"]["_meta"]["simulated"] is True
