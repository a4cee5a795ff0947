"""ETags: a strong validator for each content coding of an answer, and the test of If-None-Match against it."""

from toolserver.calls.response import RenderedResponse


def etag_of(digest: str, encoding: str | None) -> bytes:
    """The ETag of the bytes that go out: a compressed body is another representation with a tag of its own."""
    return f'"{digest}-{encoding}"'.encode() if encoding else f'"{digest}"'.encode()


def answer_etag(rendered: RenderedResponse, encoding: str | None) -> bytes:
    """The ETag of a rendered answer in a content coding."""
    return etag_of(rendered.etag, encoding)


def holds_etag(if_none_match: bytes, etag: bytes) -> bool:
    """Whether an If-None-Match header names this very ETag, weakly compared (RFC 9110, 13.1.2), or any (`*`)."""
    tags = (tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b","))
    return if_none_match.strip() == b"*" or etag in tags
