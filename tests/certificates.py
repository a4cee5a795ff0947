"""Let the HTTP clients of the tests trust one certificate authority instead of all 140 of the bundle.

No test connects to the internet, and a receiver with TLS has its own authority. A client reads the whole bundle when it
is created, which takes 22 ms of CPU time, and the tests create thousands of clients. Programs that a test starts read
the whole bundle.
"""

import tempfile
from pathlib import Path

import certifi

END = "-----END CERTIFICATE-----\n"
FOLDER = tempfile.TemporaryDirectory(prefix="toolserver-authority-")
WHOLE = Path(certifi.where())


def keep_one() -> Path:
    """A file with the first authority of the bundle."""
    kept = Path(FOLDER.name) / "one.pem"
    first, end, _ = WHOLE.read_text("utf-8").partition(END)
    kept.write_text(first + end, "utf-8")
    return kept


ONE = str(keep_one())
certifi.where = lambda: ONE
