"""The wheel of this project: it holds every file that the code reads, and works without the checkout."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.live.processes import ROOT, environment
from tests.live.programs import CLIENTS, installed
from tests.live.wheels import build_wheel, install_wheel, make_environment

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

GUIDES = {f"toolserver/{path.relative_to(ROOT)}" for path in (ROOT / "docs").rglob("*") if path.is_file()}
PACKAGES = ("toolserver", "tools", "rest_bridge", "catalog")
USES = """
import json
from pathlib import Path
import anyio
from toolserver.app import write_site_documents
from toolserver.money.ledger.store import open_ledger
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.packaged_texts import read_changelog, read_examples
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
    assert ours | {"toolserver/CHANGELOG.md", *GUIDES} == {
        name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name
    }


@pytest.mark.parametrize("judge", ["twine", "check-wheel-contents", "validate-pyproject"])
def test_the_judges_of_wheels_have_nothing_to_say(wheel: Path, judge: str) -> None:
    program = CLIENTS / ".venv-wheel" / "bin" / judge
    installed(program)
    words = {"twine": ["check", "--strict", wheel], "check-wheel-contents": [wheel]}.get(judge, ["pyproject.toml"])
    done = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout.lower()


def test_the_name_and_the_types_are_in_the_wheel(wheel: Path) -> None:
    assert wheel.name.startswith("agent_toolserver-")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"toolserver/py.typed", "toolserver/client/tools.pyi"} <= set(names)


def test_in_a_project_with_packages_named_like_ours_the_client_the_program_and_stdio_work(
    wheel: Path, tmp_path: Path
) -> None:
    programs = make_environment(wheel, tmp_path / "venv")
    project = tmp_path / "project"
    for name in ("catalog", "tools"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").touch()
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
        command = [str(word) for word in words]
        return subprocess.run(command, env=bare, cwd=project, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload,no-any-return]

    client = "import catalog, tools, toolserver.client as c; print(catalog.__file__, c.__file__)"
    assert run(programs / "python", "-c", client).stdout.split() == [
        str(project / "catalog" / "__init__.py"),
        next(str(path) for path in (tmp_path / "venv").rglob("toolserver/client/__init__.py")),
    ]
    assert "btc_price" in run(programs / "toolserver", "tools").stdout
    listing = run(programs / "toolserver", "stdio", input='{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    assert "btc_price" in listing.stdout, listing.stderr
    hidden = run(programs / "python", "-m", "toolserver", "tools")
    assert (hidden.returncode, len(hidden.stderr.splitlines())) == (1, 1)
    assert str(project / "tools" / "__init__.py") in hidden.stderr


def test_in_an_environment_of_its_own_it_runs_demo_call_and_stdio(wheel: Path, tmp_path: Path) -> None:
    """With nothing in the environment and outside of the checkout, as a user has it."""
    program = make_environment(wheel, tmp_path / "venv") / "toolserver"
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    where = [program.with_name("python"), "-c", "import toolserver; print(toolserver.__file__)"]
    assert subprocess.check_output(where, env=bare, cwd="/", text=True).startswith(str(tmp_path))
    demo = subprocess.Popen(
        [program, "demo", "--port", "0", "--ready-json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=bare,
        cwd="/",
    )
    try:
        assert demo.stdout is not None
        ready = json.loads(demo.stdout.readline())
        via = bare | {"TOOLSERVER_UPSTREAM__VIA": ready["world_url"]}

        def run(*words: str, given: str = "", **more: str) -> str:
            done = subprocess.run(
                [program, *words], input=given, env=via | more, cwd="/", capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert json.loads(run("call", "btc_price", "--json"))["_meta"]["simulated"] is True
        paid = run("call", "premium_briefing", "--json", "--server", ready["base_url"], TOOLSERVER_TOKEN=ready["token"])
        assert json.loads(paid)["_meta"]["credits_remaining"] == ready["credits"] - 1
        listing = run("stdio", given='{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        assert "btc_price" in listing
    finally:
        demo.terminate()
        demo.communicate(timeout=20)
    assert demo.returncode == 0


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
    assert (
        min(found["pages"][path] for path in ("/", "/docs", "/docs/payments.md", "/docs/webhooks", "/problems")) > 500
    )


def test_the_install_lines_of_the_readme_install_a_program_that_runs(wheel: Path, tmp_path: Path) -> None:
    """The lines as they stand, in a copy of the checkout; pip is the one here, told to load nothing from elsewhere."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(pip install [^\n]+)\ntoolserver demo\n```", readme, re.MULTILINE)
    carried = re.search(r"^`(pip wheel [^`]+)`", readme, re.MULTILINE)
    assert block is not None
    assert carried is not None
    copy = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{ROOT}", copy], check=True)
    programs = make_environment(wheel, tmp_path / "venv")
    pip = programs / "pip"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {programs / "python"} "$@"\n', encoding="utf-8")
    pip.chmod(0o755)
    bare = {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    bare |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_FORCE_REINSTALL": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for line in (carried[1], block[1]):
        done = subprocess.run(["bash", "-ec", line], cwd=copy, env=bare, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert [path.name for path in (copy / "dist").iterdir()] == [wheel.name]
    shown = subprocess.run(["toolserver", "tools"], cwd="/", env=bare, capture_output=True, text=True, check=True)
    assert "btc_price" in shown.stdout
