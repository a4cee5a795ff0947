"""Send each source its probe query once and give a verdict: ok, drift, unreadable, refused, unreachable.

With `doctor --record`, the exchanges with upstreams are kept in a folder, by source.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import msgspec

from toolserver import __version__
from toolserver.app import Service
from toolserver.core.private_file import write_private_bytes
from toolserver.core.recorded_exchange import FORMAT, SUMMARY, RecordedExchange, write_exchange
from toolserver.errors import ToolserverError
from toolserver.settings import KEYS
from toolserver.upstream.drift import Drift, Question, find_drift
from toolserver.upstream.fetcher import Fetched
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.source import Connect, Keys, Plan, Request, Source, SourceError
from toolserver.world.model import ROUTES, Ask, World
from toolserver.world.providers import load_providers

SIDE_BY_SIDE = 12
SEEDS = (1, 2, 3)  # of the simulated world; a field in one may be absent in another, as in reality
PATIENCE_S = 180.0  # how long to wait for our own rate limits when everything is to be recorded

Form = Literal["keyed", "keyless"]
Verdict = Literal["ok", "drift", "unreadable", "refused", "unreachable", "not asked"]
NEEDS_PERSON: frozenset[Verdict] = frozenset({"drift", "unreadable", "refused", "unreachable"})
_VERDICTS: dict[str, Verdict] = {
    "ok": "ok",
    "refused": "refused",
    "rate_limited": "refused",
    "connect": "unreachable",
    "timeout": "unreachable",
    "breaker_open": "unreachable",
    "no_network": "unreachable",
    "no_key": "not asked",
    "licence": "not asked",
    "no_probe": "not asked",
    "budget": "not asked",
}


class FolderInUse(ToolserverError):
    """The folder of a recording is not empty: two recordings are never mixed."""


class Recorded(NamedTuple):
    """An exchange without its secrets, and the request of the source's plan that it belongs to."""

    request: Request
    exchange: RecordedExchange


_COLLECTED: ContextVar[list[Recorded] | None] = ContextVar("exchanges of the probe that runs", default=None)


class SourceRecording:
    """Writes each exchange to a folder as soon as it has ended. Raises FolderInUse if the folder is not empty."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(folder.iterdir()):
            raise FolderInUse(f"{folder} is not empty: a recording needs a new folder")
        folder.chmod(0o700)
        self.folder = folder
        self._secrets = SecretRemover(keys)
        self._numbers: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """The number of recorded exchanges."""
        return self._numbers.total()

    @contextmanager
    def collect(self) -> Iterator[list[Recorded]]:
        """Yield a list of the exchanges that the block makes, oldest first."""
        exchanges: list[Recorded] = []
        token = _COLLECTED.set(exchanges)
        try:
            yield exchanges
        finally:
            _COLLECTED.reset(token)

    def record(self, source: Source[Any, Any], request: Request, exchange: RecordedExchange) -> None:
        """Write an exchange to the folder, without its secrets."""
        clean = self._secrets.clean(exchange)
        self._numbers[source.name] += 1
        write_exchange(self.folder, self._numbers[source.name], clean)
        collected = _COLLECTED.get()
        if collected is not None:
            collected.append(Recorded(request, clean))

    def finish(self, recorded_at: float, **findings: Any) -> None:
        """Write the summary: the time and the findings. `recorded_at` is in Unix seconds."""
        summary: dict[str, Any] = {"format": FORMAT, "version": __version__}
        summary |= {"recorded_at": recorded_at, "exchanges": self.count, **findings}
        text = self._secrets.clean_text(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        write_private_bytes(self.folder / SUMMARY, text.encode())


@dataclass(frozen=True, slots=True)
class Probe:
    """The outcome of one request to a source. `age_s` is the age of its newest item in seconds.

    `of_network`: the source measures whether hosts can be reached, so it answers even if none
    can. `rows` is the number of items in a result that is a list; `dropped` is the number left
    out. `drift` is None if nothing was compared: without a recording, without a body, or if
    the body has no fields (a page, lines of text). `form` says which of its two requests was
    sent, if an API key changes the request.
    """

    source: str
    reachable: bool
    status: str
    parse: str
    age_s: int | None
    latency_ms: int | None
    licence: str
    key: str
    detail: str
    of_network: bool = False
    rows: int | None = None
    dropped: int = 0
    drift: tuple[Drift, ...] | None = None
    form: Form | None = None

    @property
    def verdict(self) -> Verdict:
        """The result of the request in one word."""
        if self.status == "ok" and self.drift and any(each.is_schema for each in self.drift):
            return "drift"
        return _judge_word(self.status)


def _judge_word(status: str) -> Verdict:
    return _VERDICTS.get(status) or ("unreachable" if status.startswith("http_5") else "unreadable")


async def probe_sources(service: Service, recording: SourceRecording | None = None) -> list[Probe]:
    """Request every source of every tool once, at most `SIDE_BY_SIDE` at a time. Sorted by name.

    If an API key changes a source's request, both forms are sent, so that the report shows
    whether one still works when the other has stopped. Without the key, the keyed form is
    listed as not asked.
    """
    probes: list[Probe] = []
    seats = anyio.CapacityLimiter(SIDE_BY_SIDE)

    async def one(source: Source[Any, Any]) -> None:
        async with seats:
            probes.extend(await probe_forms(service, source, recording))

    async with anyio.create_task_group() as tasks:
        for source in service.registry.sources:
            tasks.start_soon(one, source)
    return sorted(probes, key=lambda probe: (probe.source, probe.form or ""))


async def probe_forms(
    service: Service, source: Source[Any, Any], recording: SourceRecording | None
) -> tuple[Probe, ...]:
    """Request a source as the service does. If its key is set but optional, also request it without the key."""
    usual = await probe_source(service, source, recording)
    if not _has_both_forms(service, source):
        return (usual,)
    if _plan(service, source, service.settings.keys) == _plan(service, source, {}):
        licence = service.facts.rights.licence_of(source).kind
        keyed = Probe(source.name, False, "no_key", "-", None, None, licence, "missing", "no key is set", form="keyed")
        return replace(usual, form="keyless"), keyed
    keyless = replace(source, request=lambda query, keys: source.plan(query, {}))
    other = await probe_source(service, keyless, recording)
    return replace(usual, form="keyed"), replace(other, form="keyless")


def _has_both_forms(service: Service, source: Source[Any, Any]) -> bool:
    """Return True if an API key changes the request to a source."""
    plain, keyed = _plan(service, source, {}), _plan(service, source, dict.fromkeys(KEYS, "key"))
    return plain is not None and keyed is not None and plain != keyed


def _plan(service: Service, source: Source[Any, Any], keys: Keys) -> Plan:
    """Return what the source's probe sends with these keys; None if it sends nothing, or there is no probe."""
    try:
        return source.plan(source.make_probe(service.clock.now()), keys)
    except (SourceError, LookupError, TypeError, AttributeError, ValueError):
        return None


async def probe_source(service: Service, source: Source[Any, Any], recording: SourceRecording | None = None) -> Probe:
    """Request one source once, bypassing the cache. With a recording, the answer is then cached for the tools."""
    if recording is None:
        return _describe(service, source, await _ask(service, source, None))
    with recording.collect() as exchanges:
        reply = await _ask(service, source, PATIENCE_S)
    if isinstance(reply.outcome, Fetched):
        service.cache.remember(source, reply.query, reply.outcome)
    drift = await anyio.to_thread.run_sync(_compare, source, reply, exchanges)
    return _describe(service, source, reply, drift)


class _Reply(NamedTuple):
    """What one request brought: the query that was asked, and the answer or the reason why there is none."""

    query: Any
    outcome: Fetched | Exception


async def _ask(service: Service, source: Source[Any, Any], patience_s: float | None) -> _Reply:
    query = None
    try:
        query = source.make_probe(service.clock.now())
        return _Reply(query, await service.fetcher.fetch(source, query, {}, None, patience_s=patience_s))
    except (SourceError, LookupError, TypeError, AttributeError, ValueError) as error:
        return _Reply(query, error)


def _compare(source: Source[Any, Any], reply: _Reply, exchanges: Sequence[Recorded]) -> tuple[Drift, ...] | None:
    """Compare the last body with those of the simulated world, unless the body says that there is no data."""
    answers = [each for each in exchanges if each.exchange.status == 200 and each.exchange.method != "CONNECT"]
    is_refusal = isinstance(reply.outcome, SourceError) and _judge_word(reply.outcome.word) != "unreadable"
    if not answers or is_refusal:
        return None
    request, exchange = answers[-1].request, answers[-1].exchange
    is_read = isinstance(reply.outcome, Fetched) and not reply.outcome.answer.dropped
    simulated = simulate_bodies(next(each.exchange for each in exchanges if each.request is request))
    drift = find_drift(Question(source, request, reply.query), exchange.body, simulated, is_read=is_read)
    return None if drift is None else tuple(drift)


def simulate_bodies(exchange: RecordedExchange) -> list[bytes]:
    """Return the bodies of the simulated upstream for the same request at the same time, one for each of SEEDS.

    Returns an empty list if nothing is simulated, or if the simulation refuses.
    """
    load_providers()
    parts = urlsplit(exchange.url)
    body = b"" if exchange.sent_json is None else json.dumps(exchange.sent_json).encode()
    headers = {name.lower(): value for name, value in exchange.sent_headers.items()}
    ask = Ask(exchange.method, parts.netloc, parts.path or "/", parts.query, headers, body)
    match = ROUTES.find(replace(ask, path=unquote(ask.path))) or ROUTES.find(ask)
    if match is None:
        return []
    route, ask = match
    replies = [route.handler(World(seed, float(int(exchange.sent_at))), ask) for seed in SEEDS]
    return [reply.body for reply in replies if reply.status == 200]


def _describe(
    service: Service,
    source: Source[Any, Any],
    reply: _Reply,
    drift: tuple[Drift, ...] | None = None,
) -> Probe:
    licence, fetched = service.facts.rights.licence_of(source).kind, reply.outcome
    if isinstance(fetched, SourceError):
        word, parse = fetched.word, "changed" if fetched.word in ("changed", "empty", "frozen") else "-"
        key, reachable = "missing" if word == "no_key" else "-", word not in ("connect", "timeout", "no_network")
        return Probe(source.name, reachable, word, parse, None, None, licence, key, fetched.reason, drift=drift)
    if isinstance(fetched, Exception):
        detail = f"needs a query: {type(fetched).__name__}"
        return Probe(source.name, False, "no_probe", "-", None, None, licence, "-", detail)
    answer = fetched.answer
    age = int((service.clock.now() - answer.newest_at).total_seconds()) if answer.newest_at else None
    rows = len(answer.value) if isinstance(answer.value, Sized) and not hasattr(answer.value, "_fields") else None
    measures = isinstance(source.plan(reply.query, {}), Connect)
    detail = f"{answer.dropped} rows left out" if answer.dropped else ""
    return Probe(
        source.name,
        True,
        "ok",
        "ok",
        age,
        answer.latency_ms,
        licence,
        "-",
        detail,
        measures,
        rows,
        answer.dropped,
        drift,
    )
