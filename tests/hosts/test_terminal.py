"""What a host in a terminal leaves running is ended with its home, and nothing else is."""

import subprocess
from pathlib import Path

from tests.hosts.terminal import end_daemons, list_processes_of


def test_what_a_program_left_running_is_ended_and_what_has_another_home_runs_on(tmp_path: Path) -> None:
    ours, other = tmp_path / "home", tmp_path / "home-of-another"
    left, another = (subprocess.Popen(["/bin/sleep", "60"], env={"HOME": str(home)}) for home in (ours, other))
    try:
        assert list(list_processes_of(ours)) == [left.pid]
        end_daemons(ours)
        assert left.wait(10) < 0
        assert another.poll() is None
    finally:
        left.kill(), another.kill()
        left.wait(), another.wait()
