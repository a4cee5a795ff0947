"""Read addresses that settings name."""

import ipaddress
import re
from urllib.parse import urlsplit

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\]")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*/?")


def normalize_base_url(address: str) -> str:
    """Return a public address with scheme and host in lower case and without a last slash.

    Raises:
        ValueError: the address is not http or https, or has more than a host, a port and a plain path. The message
            does not repeat the address.
    """
    parts = urlsplit(address)
    host, _, _ = parts.netloc.rpartition(":") if re.search(r":\d*$", parts.netloc) else (parts.netloc, "", "")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("must be an absolute http or https URL")
    if "@" in parts.netloc or "?" in address or "#" in address:
        raise ValueError("must have neither a user nor a query nor a fragment")
    if not _HOST.fullmatch(host) or parts.hostname is None or parts.port == 0 or parts.netloc.endswith(":"):
        raise ValueError("must name a host, and perhaps a port; names in other scripts are written as xn--…")
    if not _PATH.fullmatch(parts.path) or address.lower() != f"{parts.scheme}://{parts.netloc}{parts.path}".lower():
        raise ValueError("must have a plain path, or none: letters, digits, and - . _ ~ between slashes")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Return True if a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
