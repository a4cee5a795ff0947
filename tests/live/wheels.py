"""Wheels built and installed with what is on this machine: nothing is downloaded."""

import subprocess
import sys
import sysconfig
from pathlib import Path

_OFFLINE = ["--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]


def build_wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of a project into a folder that holds no other."""
    _run_pip(["wheel", *_OFFLINE, "--no-build-isolation", "--wheel-dir", folder, project])
    [wheel] = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a folder, which is returned."""
    _run_pip(["install", *_OFFLINE, "--target", folder, wheel])
    return folder


def _run_pip(words: list[str | Path]) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def make_environment(wheel: Path, folder: Path) -> Path:
    """Make a virtual environment with a wheel installed; what it depends on is that of this environment, by path.

    Returns the folder of its programs. Our own checkout, installed here as editable, is not seen from there.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    here, there = (Path(sysconfig.get_path("purelib", vars=base)) for base in ({}, _bases(folder)))
    (there / "dependencies.pth").write_text(f"{here}\n")
    _run_pip(["--python", folder / "bin" / "python", "install", *_OFFLINE, wheel])
    return folder / "bin"


def _bases(folder: Path) -> dict[str, str]:
    return {"base": str(folder), "platbase": str(folder)}
