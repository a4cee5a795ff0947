"""`toolserver doctor`: every setting and where it comes from, storage, and one request to every source."""

import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

import anyio
import click
from pydantic import BaseModel, SecretStr

from toolserver.app import Service
from toolserver.cli.advice import describe_verdict, give_advice
from toolserver.cli.in_process import local_service
from toolserver.registry.licence_table import WHAT
from toolserver.server.packaged_texts import read_licence_table
from toolserver.settings import KEYS, Settings
from toolserver.upstream.source import Connect, Source
from toolserver.upstream.source_errors import SourceError

SIDE_BY_SIDE = 12


@dataclass(frozen=True, slots=True)
class Probe:
    """The outcome of one request to a source. `age_s` is the age of its newest item in seconds.

    `of_network`: the source measures whether hosts can be reached, so that it answers also where none can.
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


async def doctor_command(settings: Settings, *, live: bool, as_json: bool) -> int:
    """Print what was found. Returns 1 when something needs a person, else 0."""
    async with local_service(settings) as service:
        probes = await probe_sources(service) if live else []
        ready = await service.ready()
        announced = [each._asdict() for each in service.fetcher.announcements.list_all()] if live else []
    table = settings_table(settings)
    licence = licence_decision(settings)
    tried = [probe.reachable for probe in probes if probe.status != "no_probe" and not probe.of_network]
    advice = give_advice(settings, ready, tried)
    if as_json:
        told = {"settings": table, "ready": ready, "licence": licence, "sources": [asdict(p) for p in probes]}
        told |= {"announcements": announced, "advice": [asdict(each) for each in advice]}
        click.echo(json.dumps(told, indent=2))
    else:
        for each in announced:
            click.echo(f"{each['source']:36} announces {each['kind']}: {each['text']}")
        _print(table, ready, probes, f"licence policy {licence['policy']}: {licence['said']}")
        click.echo(f"\n{describe_verdict(advice)}")
        for finding in advice:
            click.echo(f"  {'!' if finding.urgent else '-'} {finding.told} ({finding.code})")
    return int(any(finding.urgent for finding in advice))


async def probe_sources(service: Service) -> list[Probe]:
    """Request every source of every tool once, at most `SIDE_BY_SIDE` at a time."""
    found: list[Probe] = []
    seats = anyio.CapacityLimiter(SIDE_BY_SIDE)

    async def one(source: Source[Any, Any]) -> None:
        async with seats:
            found.append(await _probe(service, source))

    async with anyio.create_task_group() as tasks:
        for source in service.registry.sources:
            tasks.start_soon(one, source)
    return sorted(found, key=lambda probe: probe.source)


async def _probe(service: Service, source: Source[Any, Any]) -> Probe:
    licence = source.licence.kind
    query = source.probe() if callable(source.probe) else source.probe
    try:
        fetched = await service.fetcher.fetch(source, query, {}, None)
    except SourceError as error:
        reachable = error.word not in ("connect", "timeout")
        parse = "changed" if error.word in ("changed", "empty", "frozen") else "-"
        key = "missing" if error.word == "no_key" else "-"
        return Probe(source.name, reachable, error.word, parse, None, None, licence, key, error.reason)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        return Probe(
            source.name, False, "no_probe", "-", None, None, licence, "-", f"needs a query: {type(error).__name__}"
        )
    age = int((service.clock.now() - fetched.newest_at).total_seconds()) if fetched.newest_at else None
    measures = isinstance(source.plan(query, {}), Connect)
    return Probe(source.name, True, "ok", "ok", age, fetched.latency_ms, licence, "-", "", measures)


def licence_decision(settings: Settings) -> dict[str, Any]:
    """Say which licence policy is in force, whether the operator decided it, and what it takes from what is sold."""
    policy = settings.sources.licence_policy
    decided = "licence_policy" in settings.sources.model_fields_set
    lost = {tool: list(sections) for tool, sections in read_licence_table()[policy].items() if sections}
    by = "decided by the operator" if decided else "the default; selling needs a decision of the operator"
    return {"policy": policy, "decided": decided, "lost": lost, "said": f"{WHAT[policy]} ({by})"}


def settings_table(settings: Settings) -> list[dict[str, Any]]:
    """List every setting with its value (secrets masked) and where it comes from."""
    origins = _origins()
    rows = []
    for name, value in _flat(settings):
        rows.append({"setting": name, "value": _shown(value), "from": origins.get(name, "default")})
    given = settings.keys
    rows += [{"setting": f"key {name}", "value": "set" if name in given else "not set", "from": "-"} for name in KEYS]
    return rows


def _flat(model: BaseModel, prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, BaseModel) else [(prefix + name, value)]
    return rows


def _origins() -> dict[str, str]:
    """Return what set each setting, the environment or the file, by dotted name."""
    from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

    found: dict[str, str] = {}
    for label, values in (
        ("toolserver.toml", TomlConfigSettingsSource(Settings)()),
        ("environment", EnvSettingsSource(Settings)()),
    ):
        found |= dict.fromkeys(_dotted(values), label)
    return found


def _dotted(values: Any, prefix: str = "") -> list[str]:
    if not isinstance(values, dict):
        return [prefix[:-1]]
    return [name for key, value in values.items() for name in _dotted(value, f"{prefix}{key}.")]


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "********"
    if isinstance(value, dict):
        return ", ".join(f"{key}=********" for key in value) or "-"
    return str(value)


def _print(table: list[dict[str, Any]], ready: dict[str, bool], probes: list[Probe], licence: str) -> None:
    for row in table:
        click.echo(f"{row['setting']:28} {row['value']:40} {row['from']}")
    click.echo("")
    for name, ok in ready.items():
        click.echo(f"{name:28} {'ok' if ok else 'NOT READY'}")
    click.echo(f"\n{licence}")
    if not probes:
        return
    click.echo(f"\n{'source':36} {'status':14} {'parse':8} {'newest':>9} {'ms':>6}  {'licence':15} detail")
    for p in probes:
        age = "-" if p.age_s is None else f"{p.age_s} s"
        latency = "-" if p.latency_ms is None else str(p.latency_ms)
        click.echo(f"{p.source:36} {p.status:14} {p.parse:8} {age:>9} {latency:>6}  {p.licence:15} {p.detail}")
    good = sum(p.status == "ok" for p in probes)
    click.echo(f"\n{good} of {len(probes)} sources answered", file=sys.stdout)
