"""Notes that somebody whom we do not trust sends X-Forwarded-For: most likely our own proxy, which nobody has named.

Then all callers share the proxy's address, and with it one client's limits. The note is a file, so that `doctor`, which
is another process, can say so.
"""

import json
import logging
from pathlib import Path

from toolserver.core.private_file import write_private

log = logging.getLogger(__name__)

FILE = "untrusted-proxy.json"


class UntrustedProxyNote:
    """Writes one log line and one file, at the first such request of this process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._noted = False

    def note(self, peer: str) -> None:
        """Note the address that sent the header."""
        if self._noted:
            return
        self._noted = True
        log.warning("X-Forwarded-For of an untrusted peer is ignored", extra={"peer": peer})
        try:
            write_private(self._path, json.dumps({"peer": peer}) + "\n")
        except OSError as error:
            log.warning("the note of an untrusted proxy could not be written", extra={"error": str(error)})


def read_untrusted_proxy(folder: Path) -> str | None:
    """The address that a note in a data directory names; None without a note that can be read."""
    try:
        found = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    peer = found.get("peer") if isinstance(found, dict) else None
    return peer if isinstance(peer, str) else None
