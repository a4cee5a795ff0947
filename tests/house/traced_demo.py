"""`toolserver demo` in this process, noting which functions of the product run.

Each line on standard input names a file: what has run since the line before is written there, as pairs of a place and
a function in a list of JSON. Only the first call of each function is noted, in the order of the calls.
"""

import json
import sys
import threading
from pathlib import Path
from types import FrameType

from tests.architecture.code import PACKAGES, ROOT

FOLDERS = tuple(f"{ROOT / package}/" for package in PACKAGES)
functions: dict[tuple[str, str, int], None] = {}


def note(frame: FrameType, event: str, _: object) -> None:
    """Note a function of the product when it is called."""
    if event == "call" and frame.f_code.co_filename.startswith(FOLDERS):
        code = frame.f_code
        functions.setdefault((code.co_filename[len(str(ROOT)) + 1 :], code.co_qualname, code.co_firstlineno))


def answer_marks() -> None:
    """Write what has run for each file that is named, and begin anew."""
    global functions
    for line in sys.stdin:
        noted, functions = functions, {}
        path = Path(line.strip())
        path.with_suffix(".part").write_text(json.dumps(list(noted)), encoding="utf-8")
        path.with_suffix(".part").replace(path)


if __name__ == "__main__":
    threading.Thread(target=answer_marks, daemon=True).start()
    threading.setprofile(note)
    sys.setprofile(note)
    from toolserver.cli.main import main

    sys.argv = ["toolserver", "demo", "--port", "0", "--ready-json", "--data-dir", sys.argv[1]]
    main()
