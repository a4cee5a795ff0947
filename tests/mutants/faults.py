"""The mutants: small faults of the kind a person makes, each to be seen by the tests of its own room."""

from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Mutant(NamedTuple):
    """One fault: in a file, a text that stands there once, what it becomes, and the tests that must go red."""

    name: str
    file: str
    text: str
    becomes: str
    test: str

    def apply(self, source: str) -> str:
        """The file's text with the fault in it."""
        return source.replace(self.text, self.becomes, 1)


def room_of_tests(file: str) -> str:
    """The folder that tests the room of a file: the nearest one that mirrors a folder above it."""
    folder = PurePosixPath(file.removeprefix("toolserver/")).parent
    while not (ROOT / "tests" / folder).is_dir():
        folder = folder.parent
    return f"tests/{folder}"


def fault(file: str, name: str, text: str, becomes: str, test: str | None = None) -> Mutant:
    """A mutant that the named test sees; without a name, the test file at the mirrored place, else the whole room."""
    room = room_of_tests(file)
    mirrored = f"{room}/test_{PurePosixPath(file).name}"
    return Mutant(name, file, text, becomes, test or (mirrored if (ROOT / mirrored).is_file() else room))


MUTANTS = (
    fault(
        "toolserver/upstream/throttle.py",
        "a host may close itself for ever",
        "min(max(seconds or SHORTEST_CLOSURE_S, SHORTEST_CLOSURE_S), LONGEST_CLOSURE_S)",
        "max(seconds or SHORTEST_CLOSURE_S, SHORTEST_CLOSURE_S)",
    ),
    fault(
        "toolserver/upstream/throttle.py",
        "a host may close itself for no time",
        "min(max(seconds or SHORTEST_CLOSURE_S, SHORTEST_CLOSURE_S), LONGEST_CLOSURE_S)",
        "min(seconds or SHORTEST_CLOSURE_S, LONGEST_CLOSURE_S)",
    ),
    fault(
        "toolserver/upstream/host_lane.py",
        "one request more than the budget",
        "return self.budget - (sum(",
        "return self.budget + 1 - (sum(",
    ),
    fault(
        "toolserver/upstream/host_lane.py",
        "no gap between requests",
        "self._due = max(self._due, now) + count * self._gap_s",
        "self._due = max(self._due, now)",
    ),
    fault(
        "toolserver/upstream/http_sender.py",
        "an API key travels over a redirect",
        "if request.headers and is_same_origin(url, request):",
        "if request.headers:",
    ),
    fault(
        "toolserver/upstream/fetcher.py",
        "a licence policy bars nothing",
        "if self.rights.bars(source):",
        "if False:",
    ),
    fault(
        "toolserver/upstream/http_sender.py",
        "a redirect may lead anywhere",
        'is_our_site = target.scheme == "https" and (target.host == site or target.host.endswith("." + site))',
        'is_our_site = target.scheme == "https"',
    ),
    fault(
        "toolserver/upstream/http_sender.py",
        "a reset time is taken for a duration",
        'return float(headers["x-ratelimit-reset"]) - now.timestamp()',
        'return float(headers["x-ratelimit-reset"])',
    ),
    fault(
        "toolserver/upstream/freshness.py",
        "a frozen document counts as fresh",
        "SourceFreshness(age, too_old or frozen)",
        "SourceFreshness(age, too_old)",
    ),
    fault(
        "toolserver/upstream/freshness.py",
        "the agreed age is ignored",
        "age > max(source.fresh_s, sla_s)",
        "age > source.fresh_s",
    ),
    fault(
        "toolserver/upstream/outlier_guard.py",
        "a jump repeated at once is believed",
        "repeated = mine is not None and (now - mine.at).total_seconds() >= REPEAT_S",
        "repeated = mine is not None",
    ),
    fault(
        "toolserver/upstream/decode.py",
        "an error page is data",
        "if _HTML.match(body[:200]) and not",
        "if not _HTML and not",
    ),
    fault(
        "toolserver/upstream/decode.py",
        "too few items are an answer",
        "if items is not None and items < source.least:",
        "if items is not None and items < 0:",
    ),
    fault(
        "toolserver/upstream/cache.py",
        "an answer is kept for ever",
        "return (self._clock.now() - answer.fetched_at).total_seconds() <= source.fresh_s + source.keep_s",
        "return True",
    ),
    fault(
        "toolserver/core/circuit_breaker.py",
        "a circuit does not double its time",
        "2 * self._wait_s",
        "self._wait_s",
    ),
    fault(
        "toolserver/context/provenance.py",
        "failed sources are dropped from _meta",
        "for note in sorted(self.sources, key=_sort_key) if not note.barred]",
        "for note in sorted(self.used, key=_sort_key) if not note.barred]",
    ),
    fault(
        "toolserver/context/provenance.py",
        "the age of an answer is that of its youngest part",
        "return min((n.fetched_at for n in self.used if n.fetched_at), default=None)",
        "return max((n.fetched_at for n in self.used if n.fetched_at), default=None)",
    ),
    fault(
        "toolserver/context/fallback.py",
        "kept answers are shown however old",
        'None if answer is None or note is None or note.status == "stale" else',
        "None if answer is None or note is None else",
    ),
    fault(
        "toolserver/context/context.py",
        "a point however far away is near",
        "<= within_s",
        "<= within_s * 1e9",
        "tests/context/test_time_series.py",
    ),
    fault(
        "toolserver/calls/rate_limit.py",
        "a refused call costs something",
        "self._full_at.move_to_end(key)",
        "self._full_at[key] += self._interval",
    ),
    fault(
        "toolserver/calls/rate_limit.py",
        "clients are never forgotten",
        "while len(clients) > self._keys:",
        "while len(clients) < 0:",
    ),
    fault(
        "toolserver/calls/response.py",
        "stale answers are charged",
        '    if rendered.stale:\n        return "stale_data"\n',
        "",
        "tests/calls/test_sale.py",
    ),
    fault(
        "toolserver/calls/idempotency.py",
        "a key serves another request",
        "    if first != request:\n",
        "    if False:\n",
    ),
    fault(
        "toolserver/money/ledger/operations.py",
        "the last credit cannot be spent",
        "if hold is None and account.spendable < self.credits:",
        "if hold is None and account.spendable <= self.credits:",
    ),
    fault(
        "toolserver/money/ledger/operations.py",
        "a charge is not reversed",
        '    ("posted", False): ("reversed", "reverse"),\n',
        "",
    ),
    fault(
        "toolserver/money/ledger/operations.py",
        "a purchase is credited twice",
        "earlier = books.causes.get(self.cause)",
        "earlier = None",
    ),
    fault(
        "toolserver/money/ledger/operations.py",
        "a call may be repeated at another price",
        "named = (account.id, self.credits, None",
        "named = (account.id, hold and hold.credits, None",
    ),
    fault(
        "toolserver/money/ledger/operations.py",
        "a revocation is rewritten",
        "if token is None or token.revoked_at is not None:",
        "if token is None:",
    ),
    fault(
        "toolserver/money/receipts/merkle.py",
        "a leaf may pass for a node",
        'hashlib.sha256(b"\\x00" + entry)',
        'hashlib.sha256(b"\\x01" + entry)',
    ),
    fault(
        "toolserver/money/receipts/merkle.py",
        "a tile is served before it is there",
        "return self.number * WIDTH + self.width <= size >> HEIGHT * (self.level or 0)",
        "return self.number * WIDTH <= size >> HEIGHT * (self.level or 0)",
    ),
    fault(
        "toolserver/money/receipts/log.py",
        "a checkpoint is signed over a log that shrank",
        "    if size < last.size:\n",
        "    if False:\n",
    ),
    fault(
        "toolserver/money/receipts/sign.py",
        "a pending call is signed as charged",
        "return 0 if self.pending else self.charged",
        "return self.charged",
    ),
    fault(
        "toolserver/money/receipts/verify.py",
        "a revoked key still signs",
        "return record.recorded_at is not None and max(issued_at, record.recorded_at) < key.revoked_at",
        "return True",
    ),
    fault(
        "toolserver/money/receipts/verify.py",
        "a payload need not be canonical",
        "if encode(core) != payload:",
        "if False:",
    ),
    fault(
        "toolserver/mcp/asgi.py",
        "any host name reaches a server on this machine",
        'if not self._ours(f"//{_text(host)}"):',
        "if False:",
    ),
    fault(
        "toolserver/mcp/asgi.py",
        "any page may call a server on this machine",
        "if origin is not None and page not in self._origins and not self._ours(page):",
        "if False:",
    ),
    fault(
        "toolserver/mcp/fast_path.py",
        "a modern body under no version is taken",
        "return None if enveloped else False",
        "return False",
    ),
    fault(
        "toolserver/mcp/fast_path.py",
        "a failure is a result",
        "text + b'}],\"isError\":true'",
        "text + b'}],\"isError\":false'",
    ),
    fault(
        "rest_bridge/asgi.py",
        "a repeated parameter wins silently",
        "if len(found) < len(pairs):",
        "if False:",
    ),
    fault(
        "rest_bridge/etag.py",
        "a compressed body has the ETag of the plain one",
        """return f'"{digest}-{encoding}"'.encode() if encoding else f'"{digest}"'.encode()""",
        """return f'"{digest}"'.encode()""",
    ),
    fault(
        "rest_bridge/etag.py",
        "a 304 answers any ETag of the same length",
        "or etag in tags",
        "or len(etag) in map(len, tags)",
    ),
    fault(
        "rest_bridge/headers.py",
        "a refused encoding is sent",
        "return best if weights.get(best, anything) > 0 else None",
        "return best",
    ),
)
