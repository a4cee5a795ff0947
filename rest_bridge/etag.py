"""Makes ETags, a strong validator for each content coding of an answer, and tests If-None-Match against them."""

from toolserver.calls.response import RenderedResponse


def etag_of(digest: str, encoding: str | None) -> bytes:
    """Return the ETag of the bytes sent: a compressed body is a separate representation with its own tag."""
    return f'"{digest}-{encoding}"'.encode() if encoding else f'"{digest}"'.encode()


def answer_etag(rendered: RenderedResponse, encoding: str | None) -> bytes:
    """Return the ETag of a rendered answer in a content coding."""
    return etag_of(rendered.etag, encoding)


def holds_etag(if_none_match: bytes, etag: bytes) -> bool:
    """Return True if If-None-Match names this ETag, by weak comparison (RFC 9110, 13.1.2), or any ETag (`*`)."""
    tags = (tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b","))
    return if_none_match.strip() == b"*" or etag in tags
