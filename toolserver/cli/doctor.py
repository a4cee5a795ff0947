"""Implement `toolserver doctor`: list every setting and its origin, check storage, and probe every source once."""

import json
import secrets
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import click
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel, SecretStr
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from toolserver.app import Service, describe_chain_loss
from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.local_service import has_data, local_service
from toolserver.cli.network_check import find_cause, judge_servers
from toolserver.cli.options import json_option
from toolserver.cli.source_probe import NEEDS_PERSON, FolderInUse, Probe, SourceRecording, probe_sources
from toolserver.clock import SystemClock
from toolserver.core.caller import Caller
from toolserver.core.http import HttpClient, Unreachable
from toolserver.core.metrics import HOST_REFUSED, SOURCE_CLOSED
from toolserver.core.outbound import read_proxies
from toolserver.core.public_address import is_address
from toolserver.errors import CallRejected
from toolserver.money.chain.sql_chain_sums import ChainSums, sum_chain
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.purchases.chain.rpc_pool import ChainDown, make_rpc_pool
from toolserver.registry.licence_table import WHAT
from toolserver.registry.registry import Operation, Tier
from toolserver.registry.source_facts import FactsByName, SourceFacts
from toolserver.serving.advice import Advice, describe_verdict, give_advice
from toolserver.serving.data_directory import read_running
from toolserver.serving.packaged_texts import read_licence_table
from toolserver.serving.public_facts import read_rights
from toolserver.serving.service_status import describe_facts
from toolserver.settings import KEYS, Settings
from toolserver.settings.upstream import SERVERS
from toolserver.shared.redis import RedisMissing, find_fault
from toolserver.shared.redis_faults import REDIS_URL
from toolserver.sql.failures import describe_failure, explain, list_causes
from toolserver.sql.ledger_place import report_database
from toolserver.upstream.http_sender import Announcement
from toolserver.upstream.source_health import HostRefusal, describe_refusal

BEHIND_MS = 7_200_000  # of the book of the chain, which is read every ten minutes
CREDITS = 1000  # for a token that exists only in this process
VISITED = 3  # hosts that are visited to find out why no source can be reached
WITHIN_S, MOST_BYTES = 3.0, 8 * 1024 * 1024  # for the metrics of a running server


class LeftAlone(NamedTuple):
    """A host that refuses the server (with its status), or a failing source. Skipped for `left_s` more seconds."""

    name: str
    status: str | None
    left_s: float


class RunningServer(NamedTuple):
    """A server that runs on the data directory. `answers` is False if its metrics cannot be read."""

    metrics_url: str
    answers: bool
    left_alone: tuple[LeftAlone, ...]


@dataclass(frozen=True, slots=True)
class SourceFindings:
    """What requests to the sources showed: the probe of each, what upstreams announced, and which hosts refused.

    `recorded` says in a sentence what was recorded and where, if it was.
    """

    probes: Sequence[Probe] = ()
    announced: Sequence[Announcement] = ()
    refused: Sequence[HostRefusal] = ()
    recorded: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """The state of an installation.

    `ready` has the readiness of each part of the service. `database` is the report on a database server, if the ledger
    is there. `stores` says what keeps the service from starting, and why Redis cannot be used; `network` why no source
    was reached, and which RPC servers count as one; `known` what is known of the sources from earlier and from now.
    """

    ready: dict[str, bool]
    sources: SourceFindings = SourceFindings()
    database: dict[str, Any] | None = None
    server: RunningServer | None = None
    stores: tuple[Advice, ...] = ()
    network: tuple[Advice, ...] = ()
    known: FactsByName = field(default_factory=dict)


@click.command()
@click.option(
    "--live/--no-live", default=True, show_default=True, help="Send one request to every source that needs no argument"
)
@click.option(
    "--record",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Save every request and answer in a new folder, and compare the answers with what the parsers read",
)
@json_option
def doctor(live: bool, record: Path | None, as_json: bool) -> None:
    """Check this installation: every setting and its origin, storage and sources.

    Ends with a verdict and advice. Exits with 1 if something needs attention; with --record, also if a source refuses
    the request, is unreachable or unreadable, or has changed its schema. `toolserver world --replay DIR` serves a
    recording.
    """
    if record is not None and not live:
        raise click.UsageError("--record needs requests to the sources: remove --no-live")
    settings = prepare_settings()
    sys.exit(anyio.run(lambda: doctor_command(settings, live=live, as_json=as_json, record=record)))


async def doctor_command(settings: Settings, *, live: bool, as_json: bool, record: Path | None = None) -> int:
    """Examine the installation and print the report. Returns 1 when something needs attention, else 0.

    Raises:
        ClickException: the folder `record` is not empty.
    """
    asks = live and record is None
    stores: list[Advice] = []
    try:
        examination, service = await examine_service(settings, asks=asks)
    except (Exception, BaseExceptionGroup) as error:
        stores.append(Advice("cannot_start", True, f"The service cannot start: {describe_start_failure(error)}"))
        alone = settings.model_copy(update={"database_url": None, "redis_url": None})
        examination, service = await examine_service(alone, asks=asks, in_memory=True)
        examination = replace(examination, ready={"start": False})
    stores += examination.stores
    stores += await examine_redis(settings)
    stores += await examine_chain(settings) if live else []
    stores += judge_standbys(examination.database)
    stores += judge_seals(examination.database)
    sources = examination.sources
    if record is not None:
        recording = await _record(settings, record)
        sources = replace(recording.sources, recorded=describe_recording(recording, record))
    server = await ask_running_server(settings.data_dir)
    network = await anyio.to_thread.run_sync(examine_network, settings, sources.probes) if live else ()
    found = replace(examination, sources=sources, server=server, stores=tuple(stores), network=tuple(network))
    found = replace(found, known=keep_seen(service, sources))
    return report(settings, found, as_json)


async def examine_service(settings: Settings, *, asks: bool, in_memory: bool = False) -> tuple[Examination, Service]:
    """Build the service, and return what its checks, its database and, if it `asks` them, its sources say.

    Returns the service, too, which is closed. Raises what keeps it from starting.
    """
    async with local_service(settings, background=False, in_memory=in_memory) as service:
        ready = await service.readiness.check()
        probes = await probe_sources(service) if asks else []
        sources = SourceFindings(probes, service.fetcher.announcements.list_all(), service.fetcher.refusals.list_all())
        file = service.money.file
        database = None if file is None or not file.shared else await file.apart(report_database)
        if database is not None and file is not None:
            database["unsealed"] = await file.describe_sealing()
        chain_sums = None if file is None else await file.read(sum_chain)
        stores = (
            *judge_chain_book(chain_sums, int(service.clock.time() * 1000)),
            *judge_clock(service.readiness.list_losses(ready).get("clock")),
        )
        return Examination(ready, sources, database=database, stores=stores), service


def describe_start_failure(error: BaseException) -> str:
    """Return one line about what keeps the service from starting. Raises a fault of the program again."""
    causes = list(list_causes(error))
    for cause in causes:
        if isinstance(cause, click.ClickException):
            return cause.message
        if describe_failure(cause) is None:
            raise error
    return explain(error)


async def examine_redis(settings: Settings) -> list[Advice]:
    """Find out why the Redis that instances share cannot be used, if it cannot."""
    if settings.redis_url is None:
        return []
    scaling = settings.scaling
    try:
        fault = await find_fault(
            settings.redis_url.get_secret_value(), prefix=scaling.redis_prefix, deadline_s=scaling.redis_deadline_s
        )
    except (RedisMissing, ValueError) as failure:
        fault = f"{REDIS_URL}: {failure}"
    if fault is None:
        return []
    return [Advice("redis_lost", True, f"{fault}. Until then, each instance uses its own memory and share of limits.")]


async def examine_chain(settings: Settings) -> list[Advice]:
    """Find out whether any RPC server of the chain answers, if credits are sold for what is paid there."""
    if not settings.payments.rpc_urls or not (settings.payments.enabled or settings.x402.enabled):
        return []
    pool = make_rpc_pool(settings.payments, SystemClock(), read_proxies(settings.upstream.proxy_address))
    try:
        await pool.check_ready()
        return []
    except ChainDown as down:
        finding = describe_chain_loss(pool.count_servers()) or "No credits can be bought."
        return [Advice("chain_lost", True, f"{finding} They say: {down}.")]
    finally:
        await pool.aclose()


def judge_clock(loss: str | None) -> list[Advice]:
    """Say that this machine's clock is off, if it is."""
    return [] if loss is None else [Advice("clock_lost", True, loss)]


def judge_standbys(database: Mapping[str, Any] | None) -> list[Advice]:
    """Say that a failover can lose what was sold, if the database has standbys and a commit waits for none."""
    if database is None or not database["standbys"] or database["synchronous"]:
        return []
    finding = f"{database['standbys']} standbys copy the database, and a commit waits for none of them: a failover can"
    step = "lose charges and credits that were acknowledged. Set synchronous_standby_names on the server."
    return [Advice("standby_not_synchronous", False, f"{finding} {step}")]


def judge_chain_book(sums: ChainSums | None, now: int) -> list[Advice]:
    """Say that addresses do not hold what their transfers say, or that the chain was not read for an hour.

    `now` is in epoch milliseconds. There is nothing to say before the chain was first read.
    """
    advice = list[Advice]()
    if sums is None:
        return advice
    if sums.differences:
        finding = f"The balances of {len(sums.differences)} addresses are not what their transfers say after block"
        step = f"{sums.differences[0].block}. `toolserver books chain` lists them."
        advice.append(Advice("chain_differs", True, f"{finding} {step}"))
    if sums.final.at and now - sums.final.at > BEHIND_MS:
        finding = f"The chain was last read {(now - sums.final.at) // 3_600_000} hours ago, through block"
        step = f"{sums.final.block}. A service that sells credits reads it while it runs."
        advice.append(Advice("chain_book_behind", False, f"{finding} {step}"))
    return advice


def judge_seals(database: Mapping[str, Any] | None) -> list[Advice]:
    """Say that rows of money are not sealed, and what to do about it, if they are not."""
    if database is None or database["unsealed"] is None:
        return []
    return [Advice("rows_not_sealed", False, f"Rows of money are not checked: {database['unsealed']}.")]


def keep_seen(service: Service, sources: SourceFindings) -> FactsByName:
    """Store in the data directory which sources answered and what they announced. Return what is known of all sources.

    Nothing is stored without requests, or on a simulated world.
    """
    known = service.status.known
    if sources.probes:
        alive = {probe.source for probe in sources.probes if probe.status == "ok" and not probe.of_network}
        try:
            known.keep(alive, sources.announced, service.clock.now().date())
        except OSError as error:
            click.echo(f"what was seen of the sources could not be stored: {error}", err=True)
    return known.read(source.name for source in service.registry.sources)


def examine_network(settings: Settings, probes: Sequence[Probe]) -> list[Advice]:
    """Find out why no source was reached, if none was, and which RPC servers count as one. Blocks."""
    proxies, now, advice = read_proxies(settings.upstream.proxy_address), SystemClock().now, list[Advice]()
    reached = list_reached(probes)
    if reached and not any(reached) and settings.upstream.via is None:
        hosts = [host for host in settings.probes.targets.values() if not is_address(host)]
        if finding := find_cause(hosts[:VISITED], proxies, now):
            advice.append(Advice(finding.cause, True, finding.said))
    urls = [url.get_secret_value() for url in settings.payments.rpc_urls]
    servers = judge_servers(urls, proxies, now) if len(urls) > 1 else None
    if servers is not None and servers.shares:
        told = f"Of {len(urls)} RPC servers, those behind {' and behind '.join(servers.shares)} count as one:"
        step = f"{servers.apart} can agree on a large payment. Reach one directly, by naming its host in NO_PROXY."
        advice.append(Advice("servers_count_as_one", False, f"{told} {step}"))
    return advice


def list_reached(probes: Sequence[Probe]) -> list[bool]:
    """Return for each source that was tried whether it was reached, without measures of the network itself."""
    tried = (probe for probe in probes if probe.verdict != "not asked" and probe.status != "breaker_open")
    return [probe.reachable for probe in tried if not probe.of_network]


async def _record(settings: Settings, folder: Path) -> "RecordedSources":
    try:
        return await record_sources(settings, folder)
    except FolderInUse as error:
        raise click.ClickException(str(error)) from None


class RecordedSources(NamedTuple):
    """The findings of a recording, and the result of each tool: `ok`, or the reason why it has no data."""

    sources: SourceFindings
    tools: dict[str, str]
    exchanges: int


async def record_sources(settings: Settings, folder: Path) -> RecordedSources:
    """Record every source's probe, then the further requests that the tools make with default arguments.

    The service used for this stores nothing and sells nothing. It does not read answers that a server has stored.

    Raises:
        FolderInUse: the folder is not empty.
    """
    recording = SourceRecording(folder, settings.keys)
    async with local_service(settings, in_memory=True, background=False, record=recording.record) as service:
        return await record_service(service, recording)


async def record_service(service: Service, recording: SourceRecording) -> RecordedSources:
    """Record what the sources and tools of a service request. Its requests already go to the recording."""
    probes = await probe_sources(service, recording)
    tools = await _call_tools(service)
    announced = service.fetcher.announcements.list_all()
    recording.finish(
        service.clock.time(),
        is_simulated=service.settings.upstream.via is not None,
        sources=[asdict(probe) | {"verdict": probe.verdict} for probe in probes],
        announcements=[each._asdict() for each in announced],
        tools=tools,
    )
    findings = SourceFindings(probes, announced, service.fetcher.refusals.list_all())
    return RecordedSources(findings, tools, recording.count)


async def _call_tools(service: Service) -> dict[str, str]:
    """Call every tool that uses upstream data once. The probes' answers are cached, so only other requests are sent."""
    token = f"svc_live_{secrets.token_hex(32)}"
    assert isinstance(service.money.ledger, MemoryLedger)
    service.money.ledger.fund(token, CREDITS)
    caller = Caller(client="doctor", token=token, transport="cli", limited=False, agent="toolserver-doctor")
    operations = [o for o in service.registry if o.tier in (Tier.FREE, Tier.PREMIUM) and o.sources]
    return {operation.name: await _call_tool(service, operation, caller) for operation in operations}


async def _call_tool(service: Service, operation: Operation, caller: Caller) -> str:
    try:
        outcome = await service.pipeline.call(operation, {}, caller)
    except CallRejected as rejected:
        return rejected.code
    return "ok" if has_data(json.loads(outcome.rendered.payload)) else "no data"


def describe_recording(recording: RecordedSources, folder: Path) -> str:
    """Say in a sentence how much was recorded, and which tools returned no data."""
    well = sum(outcome == "ok" for outcome in recording.tools.values())
    poor = [f"{name} ({outcome})" for name, outcome in recording.tools.items() if outcome != "ok"]
    counts = (
        f"{recording.exchanges} exchanges recorded in {folder}; {well} of {len(recording.tools)} tools returned data"
    )
    return f"{counts}{': not ' if poor else ''}{', '.join(poor)}"


def report(settings: Settings, examination: Examination, as_json: bool) -> int:
    """Print the settings, the findings and the advice. Returns 1 when something needs attention, else 0."""
    probes, server = examination.sources.probes, examination.server
    table, licence = settings_table(settings), licence_decision(settings)
    is_recorded = examination.sources.recorded is not None
    unwell = [probe.source for probe in probes if probe.verdict in NEEDS_PERSON] if is_recorded else []
    advice = give_advice(
        settings,
        {} if is_refused(examination) else examination.ready,
        list_reached(probes),
        unwell,
        examination.network,
    )
    advice = [*examination.stores, *advice]
    if as_json:
        document = {
            "settings": table,
            "ready": examination.ready,
            "licence": licence,
            "sources": [asdict(probe) | {"verdict": probe.verdict} for probe in probes],
            "announcements": [each._asdict() for each in examination.sources.announced],
            "refusals": [each._asdict() for each in examination.sources.refused],
            "known": {name: describe_facts(facts) for name, facts in examination.known.items()},
            "advice": [asdict(each) for each in advice],
            "server": server and server._asdict() | {"left_alone": [each._asdict() for each in server.left_alone]},
            "database": examination.database,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        _print_findings(examination, table, "\n".join(describe_licences(licence)))
        click.echo(f"\n{describe_verdict(advice)}")
        for finding in advice:
            click.echo(f"  {'!' if finding.urgent else '-'} {finding.told} ({finding.code})")
    return int(any(finding.urgent for finding in advice))


def is_refused(examination: Examination) -> bool:
    """Return True if the service cannot start, which is a finding of its own."""
    return "start" in examination.ready


def licence_decision(settings: Settings) -> dict[str, Any]:
    """Say which licence policy is in force, who chose it, which contracts and servers count, and which data is lost."""
    policy = settings.sources.licence_policy
    decided = "licence_policy" in settings.sources.model_fields_set
    rights = read_rights(settings)
    lost = read_licence_table().list_lost(rights)
    by = "chosen by the operator" if decided else "the default; selling requires the operator's decision"
    servers = sorted(rights.keys & set(SERVERS))
    return {
        "policy": policy,
        "decided": decided,
        "contracts": dict(rights.contracts),
        "own_servers": servers,
        "lost": lost,
        "said": f"{WHAT[policy]} ({by})",
    }


def describe_licences(licence: Mapping[str, Any]) -> list[str]:
    """Describe the decision about licences in lines of text."""
    return [
        f"licence policy {licence['policy']}: {licence['said']}",
        *(f"  contract {party}: {text}" for party, text in licence["contracts"].items()),
        *(f"  own server {name}" for name in licence["own_servers"]),
        *(f"  {tool} lacks {', '.join(sections)}" for tool, sections in licence["lost"].items()),
    ]


def settings_table(settings: Settings) -> list[dict[str, Any]]:
    """List every setting with its value (secrets masked) and where it comes from."""
    origins = _origins()
    rows = []
    for name, value in _flat(settings):
        rows.append({"setting": name, "value": _shown(value), "from": origins.get(name, "default")})
    keys = settings.keys
    rows += [{"setting": f"key {name}", "value": "set" if name in keys else "not set", "from": "-"} for name in KEYS]
    return rows


def _flat(model: BaseModel, prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, BaseModel) else [(prefix + name, value)]
    return rows


def _origins() -> dict[str, str]:
    """Return the origin of each setting (the environment or the file) by dotted name."""
    origins: dict[str, str] = {}
    for label, values in (
        ("toolserver.toml", TomlConfigSettingsSource(Settings)()),
        ("environment", EnvSettingsSource(Settings)()),
    ):
        origins |= dict.fromkeys(_dotted(values), label)
    return origins


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


def _print_findings(examination: Examination, table: list[dict[str, Any]], licence: str) -> None:
    for announcement in examination.sources.announced:
        click.echo(f"{announcement.source:36} announces {announcement.kind}: {announcement.text}")
    for refusal in examination.sources.refused:
        click.echo(f"{refusal.host:36} {describe_refusal(refusal.status)}; retried after an hour, then once a day")
    for row in table:
        click.echo(f"{row['setting']:28} {row['value']:40} {row['from']}")
    click.echo("")
    for name, ok in examination.ready.items():
        click.echo(f"{name:28} {'ok' if ok else 'NOT READY'}")
    click.echo(f"\n{licence}")
    if examination.sources.probes:
        _print_probes(examination.sources, examination.known)
    click.echo("\n" + "\n".join([*describe_database(examination.database), *describe_server(examination.server)]))


def _print_probes(sources: SourceFindings, known: FactsByName) -> None:
    probes = sources.probes
    click.echo(f"\n{'source':36} {'status':14} {'verdict':11} {'newest':>9} {'ms':>6}  {'licence':15} detail")
    for p in probes:
        age = "-" if p.age_s is None else f"{p.age_s} s"
        latency = "-" if p.latency_ms is None else str(p.latency_ms)
        name = f"{p.source} ({p.form})" if p.form else p.source
        click.echo(f"{name:36} {p.status:14} {p.verdict:11} {age:>9} {latency:>6}  {p.licence:15} {p.detail}")
        for line in [*describe_drift(p), *describe_known(p, known.get(p.source, SourceFacts()))]:
            click.echo(f"    {line}")
    good = sum(p.status == "ok" for p in probes)
    click.echo(f"\n{good} of {len(probes)} sources answered")
    if sources.recorded is not None:
        verdicts = Counter(p.verdict for p in probes)
        click.echo(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
        click.echo(sources.recorded)


def describe_database(database: dict[str, Any] | None) -> list[str]:
    """Describe the database server in lines of text. Returns an empty list when the ledger is a file."""
    if database is None:
        return []
    leases = [
        f"  {lease['name']}: held by one instance for {lease['seconds_left']} s more"
        if lease["seconds_left"]
        else f"  {lease['name']}: held by no instance"
        for lease in database["leases"]
    ]
    return [
        f"the ledger is on {database['server']}, tables {database['tables']}, {database['connections']} connections",
        *leases,
    ]


def describe_drift(probe: Probe) -> list[str]:
    """Describe, field by field, how answers differ from what the parser reads. Unread fields are left out."""
    fields = [each for each in probe.drift or () if each.is_schema or each.effect != "not read"]
    return [f"{'!' if each.is_schema else '-'} {each.path}: {each.said} ({each.effect})" for each in fields]


def describe_known(probe: Probe, facts: SourceFacts) -> list[str]:
    """Describe what is known of a source and not seen now: its last sign of life if it failed, an end, lost members."""
    lines = []
    if probe.verdict in NEEDS_PERSON:
        seen = facts.seen
        lines.append(f"- last seen alive on {seen.on} ({seen.by})" if seen else "- not yet seen alive by anyone")
    lines += [
        f"! its end is announced for {each.ends_on} (last said on {each.on})"
        for each in facts.announced
        if each.ends_on
    ]
    lines += [f"! no longer gives {each.member}, last given on {each.given_on}" for each in facts.gone]
    return lines


async def ask_running_server(data_dir: Path) -> RunningServer | None:
    """Read the metrics of the server that is recorded in a data directory. Returns None if there is no record."""
    url = read_running(data_dir)
    if url is None:
        return None
    parts = urlsplit(url)
    client = HttpClient(f"{parts.scheme}://{parts.netloc}", most_bytes=MOST_BYTES)
    try:
        answer = await client.ask("GET", parts.path, headers={"accept": "text/plain"}, within_s=WITHIN_S)
        return RunningServer(url, answer.status == 200, read_left_alone(answer.body.decode()))
    except (Unreachable, ValueError):
        return RunningServer(url, False, ())
    finally:
        await client.aclose()


def read_left_alone(metrics: str) -> tuple[LeftAlone, ...]:
    """Find the skipped hosts and sources in a text of metrics. Raises ValueError if the text is not metrics."""
    left_alone = []
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if sample.name == HOST_REFUSED:
                left_alone.append(LeftAlone(sample.labels["host"], sample.labels["status"], sample.value))
            elif sample.name == SOURCE_CLOSED:
                left_alone.append(LeftAlone(sample.labels["source"], None, sample.value))
    return tuple(left_alone)


def describe_server(server: RunningServer | None) -> list[str]:
    """Describe in lines of text which hosts and sources the running server skips."""
    if server is None:
        return ["no server runs on this data directory"]
    if not server.answers:
        return [f"the server recorded at {server.metrics_url} does not answer: it was killed, or is still starting"]
    if not server.left_alone:
        return [f"the running server ({server.metrics_url}) uses every source"]
    lines = [f"the running server ({server.metrics_url}) is currently skipping:"]
    for each in server.left_alone:
        why = describe_refusal(int(each.status)) if each.status else "keeps failing"
        lines.append(f"  {each.name:36} {why}; retried in {each.left_s:.0f} s")
    return lines
