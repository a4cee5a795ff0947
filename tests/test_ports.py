"""A reserved port is one that the system hands out to nobody and no other test process is given."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests import ports

TRY = """
import sys
from contextlib import ExitStack
from tests.ports import lock
print(lock(int(sys.argv[1]), ExitStack()))
"""


def in_another_process(port):
    """Whether another process gets the lock of a port."""
    done = subprocess.run([sys.executable, "-c", TRY, str(port)], capture_output=True, text=True, check=True)
    return done.stdout == "True\n"


def test_it_is_below_those_that_the_system_hands_out(tmp_path):
    assert ports.reserve_port() < ports.find_ports().stop
    (tmp_path / "range").write_text("20000\t60999\n")
    assert ports.find_ports(tmp_path / "range") == range(8000, 20_000)
    (tmp_path / "range").write_text("1024\t60999\n")
    with pytest.raises(AssertionError, match="leaves none"):
        ports.find_ports(tmp_path / "range")
    assert ports.find_ports(tmp_path / "none").stop == 32_768


def test_nobody_else_is_given_it_though_nobody_listens_and_what_is_given_back_may_be_had():
    port = ports.reserve_port()
    assert not ports.lock(port, ExitStack())
    assert not in_another_process(port)
    with ExitStack() as locks:
        another = next(each for each in ports.find_ports() if ports.lock(each, locks))
    assert in_another_process(another)


def test_one_that_a_program_listens_on_is_not_given(monkeypatch):
    first = ports.reserve_ports(3)
    with socket.create_server(("127.0.0.1", first + 1)):
        assert [ports.is_free(first + n) for n in range(3)] == [True, False, True]
        monkeypatch.setattr(ports, "lock", lambda port, locks: True)
        among = range(first, first + 3)
        assert {ports.reserve_port(among) for _ in range(30)} == {first, first + 2}
        with pytest.raises(AssertionError, match="no 2 ports in a row"):
            ports.reserve_ports(2, among)


def test_what_was_locked_in_vain_is_given_back():
    first = ports.reserve_ports(2)
    locked = os.listdir("/proc/self/fd")
    with pytest.raises(AssertionError, match="no 1 ports"):
        ports.reserve_port(range(first, first + 2))
    assert os.listdir("/proc/self/fd") == locked
