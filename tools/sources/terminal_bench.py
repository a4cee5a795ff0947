"""Hold Terminal-Bench: no upstream offers the board as data, so a dated copy is shipped (tools/shared/data).

https://github.com/harbor-framework/terminal-bench
"""

from typing import Any

from tools.sources.hosts import other
from toolserver import Keys, Licence, Source


def request(query: None, keys: Keys) -> None:
    """Return None: there is no upstream."""
    return None


def parse(body: Any, query: None) -> None:
    return None


COPY = Source(
    "Bundled.terminal_bench",
    request,
    parse,
    licence=Licence("attribution", "Terminal-Bench (Apache-2.0)", "https://github.com/harbor-framework/terminal-bench"),
    hosts=other("bundled"),
    fresh_s=0,
    keep_s=0,
    timeout_s=1,
)
