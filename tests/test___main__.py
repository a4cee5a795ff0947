import subprocess
import sys

from tests.live.processes import ROOT
from toolserver import __version__


def test_the_package_runs_as_the_command_does():
    said = subprocess.run([sys.executable, "-m", "toolserver", "--version"], cwd=ROOT, capture_output=True, text=True)

    assert (said.returncode, said.stderr) == (0, "")
    assert __version__ in said.stdout
