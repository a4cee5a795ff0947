"""The wheel of this project: it holds every file that the code reads, and works without the checkout."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.live.processes import ROOT, environment
from tests.live.wheels import build_wheel, install_wheel

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

PACKAGES = ("toolserver", "tools", "rest_bridge", "catalog")
USES = """
import json
from pathlib import Path
import anyio
from toolserver.app import write_site_documents
from toolserver.ledger.sqlite import open_ledger
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.server.packaged_texts import read_changelog, read_examples
import toolserver

async def totals():
    async with open_ledger(Path("ledger.sqlite3")) as ledger:
        return (await ledger.totals())._asdict()

pages = write_site_documents(Registry.load("tools"), SiteFacts("https://data.example", "data.example"))
print(json.dumps({
    "from": toolserver.__file__,
    "changelog": read_changelog(),
    "ledger": anyio.run(totals),
    "examples": len(read_examples()),
    "pages": {path: len(page.body) for path, page in pages.items()},
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".pyo")
    }
    assert {Path(name).suffix for name in ours} >= {".py", ".html", ".md", ".css", ".js", ".svg", ".sql", ".json"}
    assert ours | {"toolserver/CHANGELOG.md"} == {
        name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name
    }


def test_what_is_installed_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    site = install_wheel(wheel, tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", USES],
        cwd=tmp_path,
        env=environment({"PYTHONPATH": str(site)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["from"].startswith(str(site))
    assert found["changelog"] == (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert found["ledger"]["issued"] == 0
    assert found["examples"] == len(list((ROOT / "catalog" / "examples").glob("*.json")))
    assert min(found["pages"][path] for path in ("/", "/docs", "/docs/payments.md", "/problems")) > 500
