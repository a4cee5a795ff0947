"""The files of deploy/ are those that the documents show, and name settings, programs and paths that exist."""

import re
import shlex
import shutil
import subprocess

import pytest

from tests.architecture.code import ROOT
from toolserver.settings import PREFIX, Settings

SHOWN = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("operating.md", "reverse-proxy.md"))
DEPLOY = ROOT / "deploy"


@pytest.mark.parametrize("name", ["toolserver.service", "nginx.conf", "Caddyfile"])
def test_the_document_shows_the_file_that_is_shipped(name):
    blocks = {block.partition("\n")[2] for block in re.findall(r"```\w*\n(.*?)```", SHOWN, re.DOTALL)}

    assert (DEPLOY / name).read_text(encoding="utf-8") in blocks
    assert f"deploy/{name}" in SHOWN


@pytest.mark.live
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not here")
    unit = (DEPLOY / "toolserver.service").read_text().replace("/opt/toolserver/bin/toolserver", "/bin/true")
    (tmp_path / "toolserver.service").write_text(unit)
    done = subprocess.run(
        [verify, "verify", str(tmp_path / "toolserver.service")], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "toolserver" not in done.stderr


def find_field(name: str) -> object:
    """The setting of an environment variable, None if there is none."""
    model: object = Settings
    for part in name.removeprefix(PREFIX).lower().split("__"):
        fields = getattr(model, "model_fields", {})
        if part not in fields:
            return None
        model = fields[part].annotation
    return model


@pytest.mark.parametrize("name", ["compose.yaml", ".env.example", "Dockerfile"])
def test_every_variable_of_the_service_is_a_setting(name):
    named = set(re.findall(rf"{PREFIX}[A-Z0-9_]+", (ROOT / name).read_text(encoding="utf-8")))

    assert named
    assert {variable for variable in named if find_field(variable) is None} == set()


def test_what_compose_needs_is_in_the_example_of_its_environment():
    needed = re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text(encoding="utf-8"))
    given = re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)

    assert set(needed) <= set(given)


def test_what_the_image_is_built_from_is_here_and_what_is_not_needed_stays_outside():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    copied = [shlex.split(line)[1:-1] for line in text.splitlines() if line.startswith("COPY") and "--from" not in line]
    outside = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()

    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    assert {".git", ".env", "tests"} <= set(outside)
    last = text.rpartition("\nFROM ")[2]
    assert "USER 10001" in last
    assert "HEALTHCHECK" in last
