"""Record where a running service's metrics are, in a file in its data directory, so that `doctor` can read them.

The file is written when the service is ready and removed when it stops. If a service is killed, its file stays,
and nothing answers at the recorded address.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolserver.core.private_file import write_private

log = logging.getLogger(__name__)

FILE = "running.json"


@contextmanager
def note_running(folder: Path, metrics_url: str | None) -> Iterator[None]:
    """Keep the note while the block runs. There is none without metrics, or if it cannot be written."""
    path = folder / FILE
    if metrics_url is not None:
        try:
            write_private(path, json.dumps({"metrics_url": metrics_url}) + "\n")
        except OSError as error:
            log.warning("the address of the running service could not be recorded", extra={"error": str(error)})
    try:
        yield
    finally:
        if read_running(folder) == metrics_url:  # another process may have taken over the directory
            path.unlink(missing_ok=True)


def read_running(folder: Path) -> str | None:
    """Return the metrics address in a data directory's note; None if there is no readable note."""
    try:
        note = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    url = note.get("metrics_url") if isinstance(note, dict) else None
    return url if isinstance(url, str) else None
