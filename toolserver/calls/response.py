"""Renders an answer as bytes, once per refresh, and follows its delivery; every face copies the bytes.

Only a call whose answer has been sent is delivered, and only then does its charge become
final. Watching for a disconnect costs as much as the rest of a paid call that is answered
from memory. Therefore only slow steps are watched: making an answer and settling a payment.
"""

import hashlib
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import anyio
import msgspec

from toolserver.money.ledger.protocol import NoCharge

COMPRESS_FROM = 1024
AHEAD = 0.85  # the share of its lifetime after which a popular answer is recomposed
ENCODINGS = ("zstd", "br", "gzip")  # in order of preference
SHORT_META = ("attribution", "untrusted_text", "stale", "simulated")
"""The members of `_meta` that `meta=short` keeps because they affect decisions. A `ChargeNote` follows them."""
_FACTS = ("generated_at", "expires_at", "oldest_at", "stale", "nothing", "no_charge")
_FASTEST_FIT = {"br": 5, "zstd": 3, "gzip": 6}

T = TypeVar("T")
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_when_sent: ContextVar[list["Sending"] | None] = ContextVar("when_sent", default=None)

encode = msgspec.json.encode
decode = msgspec.json.decode


@dataclass(frozen=True, slots=True)
class AnswerOrigin:
    """The service that an answer is from: its host name, whether its world is simulated, and its list of sources."""

    source: str
    simulated: bool = False
    sources_digest: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what the `_meta` of every answer says about the service."""
        digest, is_simulated = {"sources_digest": self.sources_digest}, {"simulated": True}
        return (digest if self.sources_digest else {}) | (is_simulated if self.simulated else {})


class ChargeNote(NamedTuple):
    """What the `_meta` of an answer to a token's owner says of the call over MCP, where models see no headers.

    Credits. `remaining` is None if it is unknown, `receipt_id` if there is no receipt.
    """

    charged: int
    remaining: int | None = None
    receipt_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members."""
        left = {} if self.remaining is None else {"credits_remaining": self.remaining}
        receipt = {} if self.receipt_id is None else {"receipt_id": self.receipt_id}
        return {**left, "credits_charged": self.charged, **receipt}

    @property
    def end(self) -> bytes:
        """The bytes that follow a payload without its last two: the members, and the ends of `_meta` and payload."""
        left = b"" if self.remaining is None else b',"credits_remaining":%d' % self.remaining
        receipt = b"" if self.receipt_id is None else b',"receipt_id":"%s"' % self.receipt_id.encode()
        return b'%s,"credits_charged":%d%s}}' % (left, self.charged, receipt)


@dataclass(slots=True, eq=False)
class RenderedResponse:
    """One answer's bytes and the facts that its headers need. Faces keep derived data in `memo`.

    Times are epoch seconds. `nothing` says that no source returned anything; nobody may store
    such an answer. `no_charge` is the reason why a premium answer is free, or None.
    """

    payload: bytes
    generated_at: float
    expires_at: float
    oldest_at: float | None
    stale: bool = False
    nothing: bool = False
    no_charge: str | None = None
    etag: str = ""
    hits: int = 0
    next: "RenderedResponse | None" = None
    ahead_at: float = 0.0
    keepable: bool = True
    memo: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ahead_at = self.generated_at + AHEAD * (self.expires_at - self.generated_at)
        self.etag = self.etag or self.sha256().hex()[:32]

    def sha256(self, note: ChargeNote | None = None) -> bytes:
        """Return the hash of the payload or of its copy with a note; the common part is hashed once."""
        if note is None and (whole_hash := self.memo.get("sha256 of all")) is not None:
            return bytes(whole_hash)
        shared = self.memo.get("sha256")
        if shared is None:
            shared = self.memo["sha256"] = hashlib.sha256(memoryview(self.payload)[:-2])
        whole = shared.copy()
        whole.update(self.payload[-2:] if note is None else note.end)
        digest = bytes(whole.digest())
        if note is None:
            self.memo["sha256 of all"] = digest
        return digest

    def size(self, note: ChargeNote | None = None) -> int:
        """Return the size in bytes of the payload or of its copy with a note."""
        return len(self.payload) + (0 if note is None else len(note.end) - 2)

    @property
    def escaped(self) -> bytes:
        """Return the payload as a JSON string, including quotes, as MCP carries it."""
        twin = self.memo.get("escaped")
        if twin is None:
            twin = self.memo["escaped"] = encode(self.payload.decode())
        return bytes(twin)

    def variant(self, encoding: str) -> bytes:
        """Return the payload in one of `ENCODINGS`, compressed once."""
        packed = self.memo.get(encoding)
        if packed is None:
            packed = self.memo[encoding] = compress(self.payload, encoding)
        return bytes(packed)

    @property
    def short(self) -> "RenderedResponse":
        """Return the same answer with only `SHORT_META` in its `_meta`, made once, on first use."""
        short: RenderedResponse | None = self.memo.get("short")
        if short is None:
            short = self.memo["short"] = replace(self, payload=shorten_meta(self.payload), etag="", next=None, memo={})
        return short

    def age(self, now: float) -> int:
        """Return the whole seconds since the oldest source used was fetched."""
        return max(0, int(now - (self.oldest_at if self.oldest_at is not None else self.generated_at)))

    def left(self, now: float) -> int:
        """Return the whole seconds for which these bytes remain the answer."""
        return max(0, int(self.expires_at - now))


class AnswerFacts(msgspec.Struct, frozen=True):
    """The facts of an answer besides its payload, as they are stored on disk and shared by instances."""

    generated_at: float
    expires_at: float
    oldest_at: float | None
    no_charge: str | None = None

    @classmethod
    def of(cls, rendered: RenderedResponse) -> "AnswerFacts":
        """Return the facts of an answer."""
        return cls(rendered.generated_at, rendered.expires_at, rendered.oldest_at, rendered.no_charge)

    def make_response(self, payload: bytes) -> RenderedResponse:
        """Return the original answer."""
        return RenderedResponse(payload, self.generated_at, self.expires_at, self.oldest_at, no_charge=self.no_charge)


def pack_rendered(rendered: RenderedResponse) -> bytes:
    """Return an answer as bytes, to be kept: a line with its facts, then the payload."""
    facts = {name: getattr(rendered, name) for name in _FACTS}
    return encode(facts) + b"\n" + rendered.payload


def unpack_rendered(packed: bytes) -> RenderedResponse:
    """Restore the answer that `pack_rendered` packed."""
    facts, _, payload = packed.partition(b"\n")
    return RenderedResponse(payload, **decode(facts))


def find_no_charge_reason(rendered: RenderedResponse) -> NoCharge | None:
    """Return why this answer is not charged, or None. Failed takes precedence over stale, and stale over empty."""
    if rendered.nothing:
        return "5xx"
    if rendered.stale:
        return "stale_data"
    return "empty_result" if rendered.no_charge == "empty_result" else None


def compress(body: bytes, encoding: str) -> bytes:
    """Return `body` in one of `ENCODINGS`, at a level that suits answers made every few seconds."""
    level = _FASTEST_FIT[encoding]
    if encoding == "br":
        import brotli  # as zstandard below, loaded for the first client that accepts it

        return bytes(brotli.compress(body, quality=level))
    if encoding == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=level).compress(body)
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


def shorten_meta(body: bytes) -> bytes:
    """Return the payload with only `SHORT_META` in `_meta`, always the last member; unchanged if it has none."""
    head, separator, meta = body.rpartition(b',"_meta":{')  # inside a JSON string the quotes would be escaped
    if not separator:
        return body
    whole = decode(b"{" + meta[:-1])
    return head + b',"_meta":' + encode({name: whole[name] for name in SHORT_META if name in whole}) + b"}"


def with_note(body: bytes, note: ChargeNote) -> bytes:
    """Return the payload with the note in its `_meta`, which is always the last member."""
    return body[:-2] + note.end


def with_note_escaped(escaped: bytes, note: ChargeNote) -> bytes:
    """Return the payload, given as a JSON string, with the note in its `_meta`."""
    return escaped[:-3] + note.end.replace(b'"', b'\\"') + b'"'  # an id of a receipt has nothing else to escape


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Return compact JSON. Raise TypeError for values that JSON cannot express."""
    return encode(value, order=None)


def epoch(time: datetime | None) -> float | None:
    """Return a time in epoch seconds, or None for None."""
    return None if time is None else time.timestamp()


class Sending(NamedTuple):
    """What to call once an answer was sent, and what to call if it could not be sent."""

    sent: Callable[[], None]
    lost: Callable[[], None] | None = None


def when_sent(note: Callable[[], None], lost: Callable[[], None] | None = None) -> None:
    """Call `note` when the current answer has been sent, or at once outside a `sending()` block.

    If the answer could not be sent, because its block ended with an exception, call `lost` instead.
    """
    notes = _when_sent.get()
    if notes is None:
        note()
    else:
        notes.append(Sending(note, lost))


class sending:  # written like contextlib.suppress, and used like it
    """A block in which one answer is made and sent. At its end it calls what `when_sent` got.

    It is a class because every request enters it, and a generator takes longer to create and to leave.
    """

    __slots__ = ("_before", "_notes")

    _before: Token[list[Sending] | None]

    def __init__(self) -> None:
        self._notes: list[Sending] = []

    def __enter__(self) -> None:
        self._before = _when_sent.set(self._notes)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _when_sent.reset(self._before)
        for note in self._notes:
            if kind is None:
                note.sent()
            elif note.lost is not None:
                note.lost()


class Disconnected(Exception):
    """The client disconnected before its call was answered. Nothing was charged, and no response can be sent."""


async def run_unless_disconnected(receive: Receive | None, work: Callable[[], Awaitable[T]]) -> T:
    """Do some work and return its result. If `receive` is None there is no connection to watch.

    Raises:
        Disconnected: the client disconnected first, and the work was cancelled.
        Exception: any exception that the work raises.
    """
    if receive is None:
        return await work()
    done: list[T] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            done.append(await work())
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not done:
        raise Disconnected
    return done[0]
