"""Record that an untrusted peer sends X-Forwarded-For: most likely the operator's own proxy, which is not configured.

In that case, all callers share the proxy's address and so one client's limits. The note is a file, so that `doctor`,
which is another process, can report it.
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
        log.warning("ignored X-Forwarded-For from an untrusted peer", extra={"peer": peer})
        try:
            write_private(self._path, json.dumps({"peer": peer}) + "\n")
        except OSError as error:
            log.warning("the untrusted proxy could not be recorded", extra={"error": str(error)})


def read_untrusted_proxy(folder: Path) -> str | None:
    """Return the address in a data directory's note; None if there is no readable note."""
    try:
        note = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    peer = note.get("peer") if isinstance(note, dict) else None
    return peer if isinstance(peer, str) else None
