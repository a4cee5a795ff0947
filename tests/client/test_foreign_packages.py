"""The client inside a project that has packages named like ours."""

import subprocess
import sys
from pathlib import Path

USES = """
import sys
from toolserver.client import AsyncToolClient, ToolClient
from toolserver.client.tools import WeatherPayload
import toolserver.money.receipts.verify, toolserver.money.receipts.keys
import catalog, tools
print(catalog.WHOSE, tools.WHOSE, ToolClient("https://data.example").token)
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("catalog", "tools", "rest_bridge")))
"""


def test_the_client_works_in_a_project_with_packages_named_catalog_and_tools(tmp_path: Path) -> None:
    for name in ("catalog", "tools"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"WHOSE = 'the {name} of the project'\n")
    done = subprocess.run([sys.executable, "-c", USES], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the catalog of the project the tools of the project None",
        "['catalog', 'tools']",
    ]
