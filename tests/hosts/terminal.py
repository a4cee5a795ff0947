"""A program in a terminal: some sign in only where a person sits."""

import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

READS_S = 1.0  # programs drop what is typed before they have drawn a question


def run_in_terminal(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, answers: Mapping[str, str], within_s: float
) -> tuple[int, str]:
    """Run a program, and answer each question that has a text of `answers` once. Return its status and all it wrote."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 140))
    process = subprocess.Popen(
        list(command), env=dict(env), cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    output, waiting, until = "", dict(answers), time.monotonic() + within_s
    try:
        while time.monotonic() < until and process.poll() is None:
            if select.select([ours], [], [], 0.2)[0]:
                output += _read(ours)
            for question in [text for text in waiting if text in output]:
                time.sleep(READS_S)
                os.write(ours, waiting.pop(question).encode())
        if process.poll() is None:
            process.kill()
        while select.select([ours], [], [], 0)[0] and (more := _read(ours)):
            output += more
    finally:
        os.close(ours)
    return process.wait(), output


def end_daemons(home: Path) -> None:
    """End every process whose home this is: what a program started for itself and left running."""
    for process in list_processes_of(home):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def list_processes_of(home: Path) -> Iterator[int]:
    """The numbers of the processes of ours whose home this is."""
    wanted = f"HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is somebody else's
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def _read(terminal: int) -> str:
    """Return what stands in the terminal, or nothing after the end of its program."""
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:
        return ""
