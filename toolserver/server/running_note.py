"""Notes where the metrics of a running service are: a file in its data directory, so that `doctor` can ask it.

The file is written when the service is ready and removed when it stops. One of a service that was killed stays behind:
then nobody answers at its address.
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
    """Keep the note while the block runs. Without metrics, or where it cannot be written, there is none."""
    path = folder / FILE
    if metrics_url is not None:
        try:
            write_private(path, json.dumps({"metrics_url": metrics_url}) + "\n")
        except OSError as error:
            log.warning("the note of a running service could not be written", extra={"error": str(error)})
    try:
        yield
    finally:
        if read_running(folder) == metrics_url:  # another process may have taken the directory over
            path.unlink(missing_ok=True)


def read_running(folder: Path) -> str | None:
    """Return the address of the metrics that a note in a data directory names; None without a note that can be read."""
    try:
        found = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    url = found.get("metrics_url") if isinstance(found, dict) else None
    return url if isinstance(url, str) else None
