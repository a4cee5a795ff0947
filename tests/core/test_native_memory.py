"""All threads allocate from one heap, where the C library is glibc: its own report counts them."""

import platform
import subprocess
import sys

import pytest

from toolserver.core import native_memory

COUNT = """
import ctypes, sys, threading
from toolserver.core.native_memory import share_heap

if sys.argv[1] == "shared":
    assert share_heap()
meeting = threading.Barrier(7)

def allocate():
    kept = [bytes(4000) for _ in range(3000)]
    meeting.wait()
    meeting.wait()

threads = [threading.Thread(target=allocate) for _ in range(6)]
for thread in threads:
    thread.start()
meeting.wait()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
meeting.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives each thread a heap of its own")
@pytest.mark.parametrize(("how", "is_one"), [("shared", True), ("own", False)])
def test_threads_use_one_heap(tmp_path, how, is_one):
    report = tmp_path / "heaps.xml"
    subprocess.run([sys.executable, "-c", COUNT, how, str(report)], check=True, timeout=60)
    assert (report.read_text().count("<heap nr=") == 1) is is_one


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert native_memory.share_heap() is False
