"""Read and write the cookies of our pages, and tell whose page sent a request."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

Header = tuple[bytes, bytes]


class Cookie(NamedTuple):
    """A cookie that no script of a page reads. Over https its name keeps other hosts of the domain from setting it."""

    name: str
    same_site: str
    is_secure: bool

    @property
    def full_name(self) -> str:
        return f"__Host-{self.name}" if self.is_secure else self.name

    def write(self, value: str, *, max_age_s: int | None = None) -> Header:
        """Return the header that sets it until the browser ends, or for some seconds; 0 removes it."""
        age = "" if max_age_s is None else f"; Max-Age={max_age_s}"
        secure = "; Secure" if self.is_secure else ""
        text = f"{self.full_name}={value}{age}; Path=/; HttpOnly; SameSite={self.same_site}{secure}"
        return b"set-cookie", text.encode()

    def read(self, scope: Mapping[str, Any]) -> str:
        """Return its value in a request; empty without it."""
        pairs = [part.partition("=") for part in header_of(scope, b"cookie").split(";")]
        return {name.strip(): value.strip() for name, equals, value in pairs if equals}.get(self.full_name, "")


def header_of(scope: Mapping[str, Any], name: bytes) -> str:
    """Return a request header as text; empty if it is absent."""
    headers: Iterable[Header] = scope["headers"]
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


def is_foreign(scope: Mapping[str, Any], base_url: str) -> bool:
    """Return True if a page of another site sent a request. Some browsers hide which page sends one."""
    parts = urlsplit(base_url)
    own = f"{parts.scheme}://{parts.netloc}".lower()
    origin = header_of(scope, b"origin").lower()
    return origin not in ("", "null", own) or header_of(scope, b"sec-fetch-site") in ("cross-site", "same-site")
