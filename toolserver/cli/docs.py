"""Implement `toolserver docs`: generate files of a checkout, such as pages about tools, examples and clients' types.

Examples, and what each licence policy leaves for sale, are composed on the simulated world at one instant.
"""

import base64
import hashlib
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import click

from catalog import python_types, tool_pages, typescript_types
from toolserver.calls.response import AnswerOrigin, RenderedResponse
from toolserver.calls.response_cache import ResponseCache
from toolserver.cli.load_settings import settings_from
from toolserver.clock import ManualClock
from toolserver.context.context import Surroundings
from toolserver.context.service_info import ServiceInfo
from toolserver.core.http_library import httpx
from toolserver.core.metrics import Usage
from toolserver.errors import NotFound
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.licence_table import (
    POLICIES,
    LicenceTable,
    Route,
    list_premium,
    write_markdown_table,
    write_readings,
    write_routes,
)
from toolserver.registry.meaning import Meaning, find_meanings
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.terms import TermsReading, find_readings
from toolserver.registry.tool_index import ToolIndex
from toolserver.serving.packaged_texts import read_shipped_facts
from toolserver.settings import Settings
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import HttpSender
from toolserver.upstream.rights import EVERYTHING, Rights
from toolserver.upstream.source import SourceExcluded
from toolserver.world.model import ROUTES, Ask, World
from toolserver.world.providers import load_providers

ROOT = Path(__file__).resolve().parent.parent.parent
AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
ITEMS = 2  # of every list
BARRED = ("licence_excluded", "insufficient_sample")  # warnings of a section that the policy withholds
OWN = {
    "ETH_RPC_URL": "https://ethereum.example/sim-key",
    "SOLANA_RPC_URL": "https://solana.example/sim-key",
    "MEMPOOL_URL": "https://mempool.example",
    "BITCOIN_RPC_URL": "https://sim-user:sim-password@bitcoin.example",
    "OPENMETEO_URL": "https://open-meteo.example",
    "OPENMETEO_API_KEY": "sim-1",
}
"""Own servers and keys that the simulated world answers, for what they add under a licence policy."""
SHOWN = "btc_price"  # the tool whose answer the README shows
_LICENCES = re.compile(r"(<!-- licences: [^>]*-->\n).*?(<!-- /licences -->)", re.DOTALL)
_ROUTES = re.compile(r"(<!-- routes: [^>]*-->\n).*?(<!-- /routes -->)", re.DOTALL)
_READINGS = re.compile(r"(<!-- readings: [^>]*-->\n).*?(<!-- /readings -->)", re.DOTALL)
_ANSWER = re.compile(r"(<!-- answer: [^>]*-->\n).*?(<!-- /answer -->)", re.DOTALL)


@click.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file is out of date")
def docs(check: bool) -> None:
    """Write the generated files of this checkout: docs, examples and the answer in the README."""
    changed = update_files(compose_documents(settings_from()), check=check)
    for path in changed:
        click.echo(f"{'out of date' if check else 'written'}: {path}")
    sys.exit(1 if check and changed else 0)


def readme_answer(example: Mapping[str, Any]) -> str:
    """Write an answer as the README shows it: one line per member, and only the sources from `_meta`."""
    members = ("name", "status", "fetched_at")
    sources = [{name: source[name] for name in members if name in source} for source in example["_meta"]["sources"]]
    shown = {**example, "_meta": {"sources": sources, "attribution": example["_meta"]["attribution"]}}
    lines = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in shown.items()]
    head = f"`GET /api/{example['endpoint']}` on the simulated world; `_meta` says more than is shown here:"
    return "\n".join([head, "", "```json", "{", ",\n".join(lines), "}", "```", ""])


def generate(
    registry: Registry,
    examples: Mapping[str, Any],
    licences: LicenceTable,
    root: Path = ROOT,
    meanings: Sequence[Meaning] = (),
    readings: Mapping[str, TermsReading] = MappingProxyType({}),
    samples: Mapping[str, str] = MappingProxyType({}),
) -> dict[Path, str]:
    """Return the text of every generated file, by its path below the root."""
    readme, selling = ((root / name).read_text(encoding="utf-8") for name in ("README.md", "docs/selling-credits.md"))
    table, routes = f"\n{write_markdown_table(licences)}\n\n", f"\n{write_routes(licences, registry, readings)}\n\n"
    evidence = f"\n{write_readings(registry, readings)}\n\n"
    selling = _ROUTES.sub(lambda marks: marks[1] + routes + marks[2], selling)
    selling = _READINGS.sub(lambda marks: marks[1] + evidence + marks[2], selling)
    pages = {Path(f"docs/tools/{o.name}.md"): tool_pages.tool_page(o, examples.get(o.name)) for o in registry}
    shown = {
        Path(f"catalog/examples/{name}.json"): json.dumps(example, indent=1, ensure_ascii=False) + "\n"
        for name, example in examples.items()
    }
    return {
        Path("README.md"): _ANSWER.sub(lambda marks: marks[1] + readme_answer(examples[SHOWN]) + marks[2], readme),
        Path("docs/selling-credits.md"): _LICENCES.sub(lambda marks: marks[1] + table + marks[2], selling),
        Path("catalog/licences.json"): json.dumps(asdict(licences), indent=1) + "\n",
        Path("docs/tools.md"): tool_pages.tools_page(registry),
        Path("docs/sources.md"): tool_pages.sources_page(registry, read_shipped_facts()),
        Path("docs/errors.md"): tool_pages.errors_page(PROBLEMS),
        Path("docs/meanings.md"): tool_pages.meanings_page(meanings),
        Path("toolserver/client/tools.pyi"): python_types.write_stub(registry),
        Path("clients/typescript/tools.ts"): typescript_types.write_module(registry),
        **pages,
        **shown,
        **{Path(f"catalog/samples/{name}.json"): f"{sample}\n" for name, sample in samples.items()},
    }


def compose_documents(settings: Settings, root: Path = ROOT) -> dict[Path, str]:
    """Compose every generated file of a checkout, with an example answer of each tool that needs no argument."""
    registry = Registry.load(*settings.tools)
    examples = anyio.run(example_answers, registry, settings)
    samples = anyio.run(compose_samples, registry, settings)
    licences = anyio.run(compose_licence_table, registry, settings)
    meanings, readings = find_meanings(settings.tools), find_readings(settings.tools)
    return generate(registry, examples, licences, root, meanings, readings, samples)


def update_files(documents: Mapping[Path, str], *, check: bool = False, root: Path = ROOT) -> list[Path]:
    """Update the generated files and return those that were out of date. With `check`, only return them."""
    changed = [path for path, text in documents.items() if _read(root / path) != text]
    present = [
        path for folder in ("docs/tools", "catalog/examples", "catalog/samples") for path in (root / folder).glob("*.*")
    ]
    gone = [path.relative_to(root) for path in present if path.relative_to(root) not in documents]
    if not check:
        for path in changed:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(documents[path], encoding="utf-8")
        for path in gone:
            (root / path).unlink()
    return sorted([*changed, *gone])


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


@cache
def simulated_transport() -> httpx.AsyncBaseTransport:
    """Return a transport to the simulated world that needs no socket. The world stands still,
    so each reply is made once.
    """
    world = World(1, AT.timestamp())
    replies: dict[Hashable, httpx.Response] = {}

    async def answer(request: httpx.Request) -> httpx.Response:
        key = (request.method, request.url, tuple(request.headers.raw), request.content)
        reply = replies.get(key)
        if reply is None:
            reply = replies[key] = _simulate(world, request)
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    return httpx.MockTransport(answer)


def _simulate(world: World, request: httpx.Request) -> httpx.Response:
    url = request.url
    if url.path.startswith("/probe/"):
        return httpx.Response(200, json={"latency_ms": 20})
    host, _, path = url.path.removeprefix("/u/").partition("/")
    headers = {name.lower(): value for name, value in request.headers.items()}
    match = ROUTES.find(Ask(request.method, host, f"/{path}", url.query.decode(), headers, request.content))
    if match is None:
        return httpx.Response(501)
    route, matched = match
    reply = route.handler(world, matched)
    return httpx.Response(reply.status, content=reply.body, headers={"content-type": reply.content_type})


@cache
def _index_tools(packages: tuple[str, ...]) -> ToolIndex:
    return ToolIndex(Registry.load(*packages))


class OneCall:
    """A receipt service with one uncharged call, for the examples of the tools about receipts."""

    async def verify(self, receipt: str | Mapping[str, Any], body_sha256: str | None = None) -> Mapping[str, Any]:
        raise NotFound("This is an example.")

    async def no_charge(self, day: date) -> Mapping[str, Any]:
        moment, endpoint = f"{day}T07:12:31.402Z", "/api/pro/macro"
        event = {"seq": 0, "ts": moment, "reason": "stale_data", "endpoint": endpoint, "credits": 2}
        root = base64.b64encode(hashlib.sha256(b"an example").digest()).decode()
        return {
            "date": day,
            "count": 1,
            "credits_skipped": 2,
            "by_reason": {"stale_data": 1},
            "by_endpoint": {endpoint: 1},
            "events": [{**event, "receipt_sha256": hashlib.sha256(b"a receipt").hexdigest()}],
            "log": {"origin": "data.example/api/payment/no-charge-log", "size": 1, "root": root, "waiting": 0},
        }

    async def no_charge_days(self) -> list[tuple[str, int]]:
        return []


class _Standing(ManualClock):
    """A clock whose time stands still, so that waiting times do not affect an example."""

    def now(self) -> datetime:
        return AT

    def time(self) -> float:
        return AT.timestamp()


async def example_answers(registry: Registry, settings: Settings) -> dict[str, Any]:
    """Compose the answer of every read-only tool to its default arguments, by tool name.

    Each tool has its own cache, so that no example depends on another.
    """
    load_providers(settings.tools)
    shown = [operation for operation in registry if has_example(operation)]
    with tempfile.TemporaryDirectory() as folder:
        return {operation.name: await _example(operation, settings, Path(folder)) for operation in shown}


async def compose_samples(registry: Registry, settings: Settings) -> dict[str, str]:
    """Compose one whole answer of every premium tool, with the arguments that add its series, by tool name as JSON.

    Pages show it as the sample of what is sold, the same for everybody.
    """
    load_providers(settings.tools)
    with tempfile.TemporaryDirectory() as folder:
        return {
            operation.name: (
                await compose_example(operation, settings, Path(folder), arguments=_longest(operation))
            ).payload.decode()
            for operation in registry
            if has_example(operation) and operation.tier is Tier.PREMIUM
        }


async def _example(operation: Operation, settings: Settings, folder: Path) -> dict[str, Any]:
    return shortened(json.loads((await compose_example(operation, settings, folder)).payload))


async def compose_example(
    operation: Operation,
    settings: Settings,
    folder: Path,
    *,
    arguments: Mapping[str, Any] = MappingProxyType({}),
    rights: Rights = EVERYTHING,
    keys: Mapping[str, str] = MappingProxyType({}),
) -> RenderedResponse:
    """Compose an answer on the simulated world at the fixed instant, with its own cache.

    `keys` are API keys and own servers that the simulated world answers.
    """
    clock = _Standing(AT)
    sender = HttpSender(
        clock=clock, keys=keys, user_agent="examples", via="http://world", transport=simulated_transport()
    )
    reader = Fetcher(sender, keys=keys, rights=rights)
    targets = settings.probes.targets
    host = ServiceInfo(
        clock,
        folder,
        probe_targets=targets,
        usage=Usage(clock.now),
        evidence=OneCall(),
        tools=_index_tools(tuple(settings.tools)),
    )
    async with anyio.create_task_group() as tasks:
        cache = SourceCache(reader, clock=clock, tasks=tasks)
        answers = ResponseCache(
            cache,
            clock=clock,
            tasks=tasks,
            origin=AnswerOrigin("data.example"),
            hedge_after_s=30,
            surroundings=Surroundings(host),
        )
        for source, query in operation.warm:
            with suppress(SourceExcluded):
                await cache.fresh(source, query, sla_s=0)
        rendered = await answers.compose(operation, operation.arguments(**arguments))
        tasks.cancel_scope.cancel()
    await reader.aclose()
    return rendered


def has_example(operation: Operation) -> bool:
    """Return True if a tool answers without arguments and changes nothing."""
    required = any(field.is_required() for field in operation.arguments.model_fields.values())
    return operation.reads_only and not required and operation.tier in (Tier.FREE, Tier.PREMIUM)


def shortened(answer: dict[str, Any]) -> dict[str, Any]:
    """Shorten an answer to two items per list and one source."""
    cut = {name: _cut(value) for name, value in answer.items() if name != "_meta"}
    meta = dict(answer["_meta"])
    meta["sources"] = meta["sources"][:1]
    meta["attribution"] = meta["attribution"][:ITEMS]
    return {**cut, "_meta": meta}


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(item) for item in value[:ITEMS]]
    if isinstance(value, dict):
        return {name: _cut(inner) for name, inner in value.items()}
    return value


async def compose_licence_table(registry: Registry, settings: Settings, *, routes: bool = True) -> LicenceTable:
    """Compose every premium answer on the simulated world under every policy, to see which sections are lost.

    With `routes`, find what brings each of them back: a contract about a source, or a server or key of the operator.
    """
    load_providers(settings.tools)
    with tempfile.TemporaryDirectory() as folder:
        trials = [Trial(operation, settings, Path(folder)) for operation in list_premium(registry)]
        sections = {trial.operation.name: await trial.list_sections() for trial in trials}
        lost: dict[str, dict[str, dict[str, Sequence[Route]]]] = {policy: {} for policy in POLICIES}
        for policy, trial in itertools.product(POLICIES, trials):
            name = trial.operation.name
            gone = await trial.find_lost(policy) if policy != "any" else []
            gone = sections[name] if gone is None else gone
            sections[name] = sorted({*sections[name], *gone})
            lost[policy][name] = await trial.find_routes(policy, gone) if routes else dict.fromkeys(gone, ())
    return LicenceTable(sections, lost)


@dataclass(frozen=True, slots=True)
class Trial:
    """A premium tool whose answer is composed under different rights."""

    operation: Operation
    settings: Settings
    folder: Path

    async def list_sections(self) -> list[str]:
        """Return the sections that sources of the answer are read for, if every source may be used."""
        answer = await self._compose(Rights())
        return sorted({source["section"] for source in json.loads(answer.payload)["_meta"]["sources"]})

    async def find_lost(self, policy: str, given: Sequence[str] = ()) -> list[str] | None:
        """Return the sections that are lost if the operator has these contracts and settings; None if all are."""
        contracts = tuple((name, "a contract") for name in given if name not in OWN)
        answer = await self._compose(Rights(policy, contracts, frozenset(OWN) & frozenset(given)))
        if answer.nothing:
            return None
        payload = json.loads(answer.payload)
        warned = [warning["section"] for warning in payload.get("warning", ()) if warning["code"] in BARRED]
        return [section for section in dict.fromkeys(warned) if _is_gone(payload, section)]

    async def find_routes(self, policy: str, lost: Sequence[str]) -> dict[str, Sequence[Route]]:
        """Return for each lost section every name that brings it back alone, or one set of names that does together."""
        routes: dict[str, list[Route]] = {section: [] for section in lost}
        names = self._list_names(policy) if lost else []
        for name in names:
            for section in await self._find_regained(policy, lost, [name]):
                routes[section].append([name])
        for section in await self._find_regained(policy, [one for one in lost if not routes[one]], names):
            needed = list(names)
            for name in names:
                without = [one for one in needed if one != name]
                if await self._find_regained(policy, [section], without):
                    needed = without
            routes[section].append(needed)
        return {**routes}

    async def _find_regained(self, policy: str, lost: Sequence[str], given: Sequence[str]) -> list[str]:
        if not lost or not given:
            return []
        still = await self.find_lost(policy, given)
        return [] if still is None else [section for section in lost if section not in still]

    def _list_names(self, policy: str) -> list[str]:
        """Return the settings that change the terms of a source of this tool, then the sources that are barred."""
        sources = {source.name: source for source in self.operation.sources}
        settings = dict.fromkeys(key for source in sources.values() for key in source.terms)
        return [*settings, *(name for name, source in sources.items() if Rights(policy).bars(source))]

    async def _compose(self, rights: Rights) -> RenderedResponse:
        keys = {name: value for name, value in OWN.items() if name in rights.keys}
        return await compose_example(
            self.operation, self.settings, self.folder, arguments=_longest(self.operation), rights=rights, keys=keys
        )


def _longest(operation: Operation) -> dict[str, Any]:
    """Return the arguments that add a series, if the tool has any."""
    history = operation.input_schema["properties"].get("history", {}).get("enum")
    return {"history": history[0]} if history else {}


def _is_gone(payload: Any, section: str) -> bool:
    """Return True if the section at this path of a payload is null or absent."""
    for name in section.split("."):
        if not isinstance(payload, dict) or name not in payload:
            return True
        payload = payload[name]
    return payload is None or payload == []
