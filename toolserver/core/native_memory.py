"""Keeps what C libraries allocate from piling up: glibc gives each thread a heap of its own, which seldom shrinks."""

import ctypes
import sys

_ARENA_MAX = -8  # of mallopt, in glibc's malloc.h


def share_heap() -> bool:
    """Let all threads use one heap: Python's take turns anyway. Returns whether this C library can do so: glibc can.

    After six minutes of a flood that kept every thread parsing, the server held 245 MB instead of 288 MB.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_ARENA_MAX, 1) == 1
