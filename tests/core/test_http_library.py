"""The library of HTTP clients is named at one place, and its command line is not loaded."""

import json
import os
import subprocess
import sys
from typing import Any

import httpx
import pytest

from toolserver.core import http_library

SCRIPT = """
import json, sys
from toolserver.core.http_library import httpx
loaded = sorted({name.partition(".")[0] for name in sys.modules} & {"rich", "pygments", "click"})
import importlib
command = importlib.import_module("httpx._main").__name__
print(json.dumps([loaded, command]))
"""


def test_the_tests_and_the_product_have_the_same_library() -> None:
    assert http_library.httpx is httpx
    assert httpx.__name__ == os.environ.get("HTTP_LIBRARY", "httpx")


@pytest.mark.slow("it starts Python")
def test_the_command_line_of_the_library_is_loaded_only_by_those_who_want_it() -> None:
    """Where rich is installed, httpx would load it and pygments."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    answer: Any = json.loads(done.stdout)
    assert answer == [[], "httpx._main"]
