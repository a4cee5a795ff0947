"""Check that a forked program is to its tests what a plainly started one is."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.live.forking import CAN_FORK, ForkedProcess, start_program
from tests.live.processes import environment, ran, started

pytestmark = pytest.mark.live
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture(params=[True, False], ids=["forked", "plain"])
def forked(request):
    return request.param


def say(folder, *words, forked, **more):
    """What a module of the test's own does: it stands in the folder, which is on the path."""
    (folder / "saying.py").write_text(
        "import os, sys, time\n"
        "print('words', sys.argv[1:], os.getcwd(), os.environ.get('MINE'), os.environ.get('HOME'), __name__)\n"
        "print('error', file=sys.stderr)\n"
        "time.sleep(float(sys.argv[1])) if len(sys.argv) > 1 else None\n"
        "sys.exit(int(os.environ.get('CODE', '0')))\n"
    )
    env = environment({"PYTHONPATH": str(folder)} | more, folder)
    command = [sys.executable, "-m", "saying", *words]
    return start_program(command, env=env, cwd=folder, forked=forked, **PIPES)


def test_it_has_words_folder_environment_output_and_status_of_its_own(tmp_path, forked):
    process = say(tmp_path, "0", forked=forked, MINE="yes", CODE="3")

    out, errors = process.communicate(timeout=30)

    assert out.decode().splitlines() == [f"words ['0'] {tmp_path} yes {tmp_path} __main__"]
    assert errors.decode().splitlines()[-1] == "error"
    assert (process.wait(), process.poll(), process.returncode) == (3, 3, 3)
    assert isinstance(process, ForkedProcess) == (forked and CAN_FORK)


def test_it_can_be_killed_and_waited_for(tmp_path, forked):
    process = say(tmp_path, "60", forked=forked)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(30) == -signal.SIGKILL
    process.send_signal(signal.SIGTERM)  # to nobody
    process.stdout.close()
    process.stderr.close()


def test_many_waiters_all_read_the_status(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        processes = [say(tmp_path, "0.2", forked=True, CODE=str(n)) for n in range(4)]
        statuses = [threads.submit(process.wait, 30) for process in processes for _ in range(2)]
        assert [status.result() for status in statuses] == [0, 0, 1, 1, 2, 2, 3, 3]
    for process in processes:
        process.communicate(timeout=30)


def test_our_program_answers_the_same_both_ways(tmp_path):
    found = []
    for forked in (True, False):
        with started("world", folder=tmp_path, forked=forked) as world:
            found.append((set(world.ready), world.process.poll()))
    assert found[0] == found[1]
    assert ran("--version", folder=tmp_path).stdout == ran("--version", folder=tmp_path).stdout != b""


@pytest.mark.skipif(not CAN_FORK, reason="nothing is forked here")
def test_a_server_is_forked_from_a_process_of_this_test_run(tmp_path):
    with started("serve", folder=tmp_path, TOOLSERVER_SOURCES__LICENCE_POLICY="any") as program:
        status = Path(f"/proc/{program.process.pid}/status").read_text().splitlines()
        parent = next(line.split()[1] for line in status if line.startswith("PPid"))
        assert "forkserver" in Path(f"/proc/{parent}/cmdline").read_text()
