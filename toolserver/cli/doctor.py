"""Implement `toolserver doctor`: list every setting and its origin, check storage, and probe every source once."""

import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel, SecretStr

from toolserver.app import Service
from toolserver.cli.in_process import local_service
from toolserver.cli.record_sources import record_sources
from toolserver.cli.running_server import ask_running_server, describe_server
from toolserver.cli.source_probe import NEEDS_PERSON, Probe, probe_sources
from toolserver.cli.source_recording import FolderInUse
from toolserver.registry.licence_table import WHAT
from toolserver.serving.advice import describe_verdict, give_advice
from toolserver.serving.packaged_texts import read_licence_table
from toolserver.settings import KEYS, Settings
from toolserver.sql.postgres_report import report_database
from toolserver.upstream.announcements import Announcement
from toolserver.upstream.refusals import HostRefusal


@dataclass(frozen=True, slots=True)
class Examination:
    """What the probes found out about sources. `recorded` says in a sentence what was recorded and where, if it was."""

    probes: list[Probe]
    announced: list[Announcement]
    refused: list[HostRefusal]
    recorded: str = ""


async def doctor_command(settings: Settings, *, live: bool, as_json: bool, record: Path | None = None) -> int:
    """Print the findings. Returns 1 when something needs attention, else 0.

    Raises:
        ClickException: the folder `record` is not empty.
    """
    async with local_service(settings, background=False) as service:
        ready = await service.readiness.check()
        found = await _examine(service) if live and record is None else Examination([], [], [])
        database = None if settings.database_url is None else await service.money.own.file.apart(report_database)
    if record is not None:
        found = await _record(settings, record)
    server = await ask_running_server(settings.data_dir)
    table = settings_table(settings)
    licence = licence_decision(settings)
    asked = (probe for probe in found.probes if probe.status not in ("no_probe", "no_key"))
    tried = [probe.reachable for probe in asked if not probe.of_network]
    unwell = [probe.source for probe in found.probes if probe.verdict in NEEDS_PERSON] if record is not None else []
    advice = give_advice(settings, ready, tried, unwell)
    announced = [each._asdict() for each in found.announced]
    refused = [each._asdict() for each in found.refused]
    if as_json:
        sources = [asdict(probe) | {"verdict": probe.verdict} for probe in found.probes]
        told: dict[str, Any] = {"settings": table, "ready": ready, "licence": licence, "sources": sources}
        told |= {"announcements": announced, "refusals": refused, "advice": [asdict(each) for each in advice]}
        left_alone = [each._asdict() for each in server.left_alone] if server else []
        told |= {"server": server and server._asdict() | {"left_alone": left_alone}, "database": database}
        click.echo(json.dumps(told, indent=2))
    else:
        for each in announced:
            click.echo(f"{each['source']:36} announces {each['kind']}: {each['text']}")
        for each in refused:
            click.echo(f"{each['host']:36} refuses us (status {each['status']}); retried after an hour, then a day")
        _print(table, ready, found, f"licence policy {licence['policy']}: {licence['said']}")
        click.echo("\n" + "\n".join([*describe_database(database), *describe_server(server)]))
        click.echo(f"\n{describe_verdict(advice)}")
        for finding in advice:
            click.echo(f"  {'!' if finding.urgent else '-'} {finding.told} ({finding.code})")
    return int(any(finding.urgent for finding in advice))


async def _examine(service: Service) -> Examination:
    probes, fetcher = await probe_sources(service), service.fetcher
    return Examination(probes, fetcher.announcements.list_all(), fetcher.refusals.list_all())


async def _record(settings: Settings, folder: Path) -> Examination:
    try:
        found = await record_sources(settings, folder)
    except FolderInUse as error:
        raise click.ClickException(str(error)) from None
    well = sum(outcome == "ok" for outcome in found.tools.values())
    recorded = f"{found.exchanges} exchanges recorded in {folder}; {well} of {len(found.tools)} tools returned data"
    poor = [f"{name} ({outcome})" for name, outcome in found.tools.items() if outcome != "ok"]
    return Examination(
        found.probes, found.announced, found.refused, f"{recorded}{': not ' if poor else ''}{', '.join(poor)}"
    )


def licence_decision(settings: Settings) -> dict[str, Any]:
    """Say which licence policy is in force, whether the operator chose it, and which data it withholds from sale."""
    policy = settings.sources.licence_policy
    decided = "licence_policy" in settings.sources.model_fields_set
    lost = {tool: list(sections) for tool, sections in read_licence_table()[policy].items() if sections}
    by = "chosen by the operator" if decided else "the default; selling requires the operator's decision"
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
    """Return the origin of each setting (the environment or the file) by dotted name."""
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


def _print(table: list[dict[str, Any]], ready: dict[str, bool], found: Examination, licence: str) -> None:
    for row in table:
        click.echo(f"{row['setting']:28} {row['value']:40} {row['from']}")
    click.echo("")
    for name, ok in ready.items():
        click.echo(f"{name:28} {'ok' if ok else 'NOT READY'}")
    click.echo(f"\n{licence}")
    if not found.probes:
        return
    click.echo(f"\n{'source':36} {'status':14} {'verdict':11} {'newest':>9} {'ms':>6}  {'licence':15} detail")
    for p in found.probes:
        age = "-" if p.age_s is None else f"{p.age_s} s"
        latency = "-" if p.latency_ms is None else str(p.latency_ms)
        name = f"{p.source} ({p.form})" if p.form else p.source
        click.echo(f"{name:36} {p.status:14} {p.verdict:11} {age:>9} {latency:>6}  {p.licence:15} {p.detail}")
        for line in describe_drift(p):
            click.echo(f"    {line}")
    good = sum(p.status == "ok" for p in found.probes)
    click.echo(f"\n{good} of {len(found.probes)} sources answered", file=sys.stdout)
    if found.recorded:
        verdicts = Counter(p.verdict for p in found.probes)
        click.echo(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
        click.echo(found.recorded)


def describe_database(found: dict[str, Any] | None) -> list[str]:
    """Describe the database server in lines of text. Returns an empty list when the ledger is a file."""
    if found is None:
        return []
    leases = [
        f"  {lease['name']}: held by one instance for {lease['seconds_left']} s more"
        if lease["seconds_left"]
        else f"  {lease['name']}: held by no instance"
        for lease in found["leases"]
    ]
    return [
        f"the ledger is on {found['server']}, tables {found['tables']}, {found['connections']} connections",
        *leases,
    ]


def describe_drift(probe: Probe) -> list[str]:
    """Describe, field by field, how answers differ from what the parser reads. Unread fields are left out."""
    told = [each for each in probe.drift or () if each.is_schema or each.effect != "not read"]
    return [f"{'!' if each.is_schema else '-'} {each.path}: {each.said} ({each.effect})" for each in told]
