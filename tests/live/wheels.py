"""Wheels built and installed with what is on this machine: nothing is downloaded."""

import subprocess
import sys
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
