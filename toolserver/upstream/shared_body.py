"""Writes and reads bodies of sources, their times and fetch failures for other instances.

Shared data is not trusted: unreadable data counts as missing.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from toolserver.core.packing import PackingDamaged, pack, run_apart, unpack
from toolserver.upstream import source_errors
from toolserver.upstream.body_store import StoredBody
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.source import MIB, Source
from toolserver.upstream.source_errors import HostRefused, SourceDown, SourceError
from toolserver.upstream.throttle import RequestWithheld

log = logging.getLogger(__name__)

SHARED_BYTES = 4 * MIB  # of a compressed body; larger ones are not shared
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERRORS: dict[str, type[SourceError]] = {
    each.__name__: each
    for each in (*vars(source_errors).values(), RequestWithheld)
    if isinstance(each, type) and issubclass(each, SourceError) and each is not HostRefused
}


class _Failure(NamedTuple):
    """Why a fetch failed: the kind of the error, its word and detail, and when to retry."""

    kind: str
    word: str
    detail: str
    retry_after_s: float | None


def write_time(at: datetime) -> bytes:
    """Return a time as microseconds since 1970, which is exact."""
    return b"%d" % ((at - _EPOCH) // timedelta(microseconds=1))


def read_time(at: bytes | None) -> datetime | None:
    """Return a written time, or None if it is not one."""
    try:
        return None if at is None else _EPOCH + timedelta(microseconds=int(at))
    except (ValueError, OverflowError):
        return None


async def pack_body(body: bytes, validators: dict[str, str], secrets: SecretRemover) -> list[bytes] | None:
    """Return the validators and the body, or None if they are too large to share or contain one of our API keys."""
    named = msgspec.json.encode(validators)
    if await run_apart(len(body), lambda: secrets.is_in(body) or secrets.is_in(named)):
        return None
    packed = await pack(body)
    return [named, packed] if len(packed) <= SHARED_BYTES else None


async def unpack_body(
    source: Source[Any, Any], at: bytes | None, validators: bytes | None, packed: bytes | None
) -> StoredBody | None:
    """Return the shared body, or None if it is unreadable or larger than the source may send."""
    fetched_at = read_time(at)
    if fetched_at is None or validators is None or packed is None:
        return None
    try:
        named = msgspec.json.decode(validators, type=dict[str, str])
        return StoredBody(await unpack(packed, source.max_bytes), fetched_at, named)
    except (msgspec.DecodeError, PackingDamaged) as error:
        log.warning("what instances share cannot be read", extra={"source": source.name, "reason": str(error)[:100]})
        return None


def write_failure(error: SourceError, secrets: SecretRemover) -> bytes:
    """Return why a fetch failed, without our API keys."""
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in _ERRORS)
    detail = secrets.clean_text(str(error))[:100]
    return msgspec.msgpack.encode(_Failure(kind, error.word, detail, error.retry_after_s))


def read_failure(why: bytes) -> SourceError:
    """Return the error that was written."""
    try:
        failure = msgspec.msgpack.decode(why, type=_Failure)
    except msgspec.DecodeError:
        return SourceDown("another instance got no answer")
    kind = _ERRORS.get(failure.kind, SourceDown)
    return kind(failure.detail, word=failure.word, retry_after_s=failure.retry_after_s)
