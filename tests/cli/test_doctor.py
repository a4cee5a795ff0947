"""`toolserver doctor`: settings and their origins, what needs a person, what a recording has, what a server skips."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import anyio
import click
import pytest

from tests.arranged import arrange_service
from tests.calls.parts import START
from tests.calls.toy import FIRST, ONE, REGISTRY, SECOND, TWO
from tests.internet import Internet
from tests.ports import reserve_port
from toolserver.app import Service, ServiceParts
from toolserver.cli.doctor import (
    Examination,
    LeftAlone,
    RecordedSources,
    RunningServer,
    SourceFindings,
    ask_running_server,
    describe_database,
    describe_drift,
    describe_recording,
    describe_server,
    doctor_command,
    examine_chain,
    judge_chain_book,
    judge_clock,
    judge_standbys,
    keep_seen,
    read_left_alone,
    record_service,
    record_sources,
    report,
    settings_table,
)
from toolserver.cli.source_probe import FolderInUse, Probe, SourceRecording
from toolserver.clock import ManualClock
from toolserver.core.metrics import Metrics
from toolserver.core.recorded_exchange import read_exchanges, read_summary
from toolserver.money.chain.sql_chain_book import ScanMark
from toolserver.money.chain.sql_chain_sums import ChainSums, KnownDifference
from toolserver.money.chain.transfer_states import Dust
from toolserver.registry.source_facts import Announced, GoneMember, Sighting, SourceFacts, read_facts
from toolserver.serving.advice import Advice
from toolserver.serving.data_directory import note_running
from toolserver.serving.known_sources import SOURCE_FACTS, KnownSources
from toolserver.serving.listen import bind_socket, serve_metrics
from toolserver.settings import KEYS, ServingSettings, Settings, SourceSettings
from toolserver.upstream.drift import Drift
from toolserver.upstream.http_sender import Announcement
from toolserver.upstream.source_health import HostRefusal


def table(settings=None):
    return {row["setting"]: (row["value"], row["from"]) for row in settings_table(settings or Settings())}


def test_each_setting_says_where_it_comes_from(tmp_path, monkeypatch):
    (tmp_path / "toolserver.toml").write_text("port = 1\n[limits]\ndaily = 5\nspacing_s = 2\n")
    monkeypatch.setenv("TOOLSERVER_LIMITS__DAILY", "6")
    found = table()
    assert found["port"] == ("1", "toolserver.toml")
    assert found["limits.spacing_s"] == ("2.0", "toolserver.toml")
    assert found["limits.daily"] == ("6", "environment")
    assert found["host"] == ("127.0.0.1", "default")


def test_secrets_are_masked_and_keys_are_set_or_not(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_TOKEN", "svc_live_secret")
    monkeypatch.setenv("TOOLSERVER_SOURCES__KEYS", '{"GITHUB_TOKEN": "ghp_secret"}')
    found = table()
    assert found["token"] == ("********", "environment")
    assert found["sources.keys"][0] == "GITHUB_TOKEN=********"
    assert (found["key GITHUB_TOKEN"][0], found["key FRED_API_KEY"][0]) == ("set", "not set")
    assert {f"key {name}" for name in KEYS} <= found.keys()
    assert "secret" not in str(found).replace("ledger.secret", "").replace("facilitator_token", "")


READY = {"storage": True}
GOOD = Probe("A.good", True, "ok", "ok", 90, 12, "yes", "-", "")
BAD = Probe("B.bad", False, "connect", "-", None, None, "yes", "-", "connect: refused")


@pytest.mark.parametrize(
    ("ready", "probes", "status"), [(True, [GOOD, BAD], 0), (False, [GOOD, BAD], 1), (True, [BAD], 1)]
)
def test_the_status_says_whether_something_needs_a_person(capsys, ready, probes, status):
    assert report(Settings(), Examination({"storage": ready}, SourceFindings(probes)), as_json=False) == status
    out = capsys.readouterr().out
    assert ("NOT READY" in out) is not ready
    assert f"{len(probes) - 1} of {len(probes)} sources answered\n" in out
    assert ("findings need attention" in out) is bool(status)


def test_a_measure_of_the_network_is_no_sign_that_a_source_was_reached(capsys):
    probes = [BAD, replace(GOOD, source="Network.reach", of_network=True)]
    assert report(Settings(), Examination(READY, SourceFindings(probes)), as_json=False) == 1
    assert "(no_network)" in capsys.readouterr().out


@pytest.mark.parametrize("status", ["budget", "breaker_open", "licence", "no_key"])
def test_a_source_that_was_not_asked_was_not_reached(capsys, status):
    probes = [BAD, replace(GOOD, source="C.idle", status=status)]
    assert report(Settings(), Examination(READY, SourceFindings(probes)), as_json=False) == 1
    assert "(no_network)" in capsys.readouterr().out


def test_what_the_network_was_found_to_be_stands_in_place_of_no_network(capsys):
    finding = Advice("proxy_refuses", True, "The proxy refuses.")
    assert report(Settings(), Examination(READY, SourceFindings([BAD]), network=(finding,)), as_json=False) == 1
    out = capsys.readouterr().out
    assert "(proxy_refuses)" in out
    assert "(no_network)" not in out


def test_as_text_each_source_is_a_line_with_its_age_and_latency(capsys):
    report(Settings(), Examination(READY, SourceFindings([GOOD, BAD])), as_json=False)
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["A.good"] == ["A.good", "ok", "ok", "90", "s", "12", "yes"]
    assert lines["B.bad"] == ["B.bad", "connect", "unreachable", "-", "-", "yes", "connect:", "refused"]


def test_as_json_there_is_one_document(capsys):
    report(Settings(), Examination(READY, SourceFindings([GOOD])), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        "settings",
        "ready",
        "licence",
        "sources",
        "announcements",
        "refusals",
        "known",
        "advice",
        "server",
        "database",
    ]
    assert document["server"] is document["database"] is None
    assert (document["ready"], document["sources"][0]["source"]) == (READY, "A.good")


KNOWN = {
    "A.good": SourceFacts(gone=(GoneMember("price", date(2026, 4, 9)),)),
    "B.bad": SourceFacts(
        seen=Sighting(date(2026, 7, 1), "recorded body"),
        announced=(Announced("sunset", "Fri, 01 May 2026 00:00:00 GMT", date(2026, 7, 1)),),
    ),
}


def test_a_source_that_fails_shows_its_last_sign_of_life_and_every_source_what_has_ended(capsys):
    probes = [GOOD, BAD, replace(BAD, source="C.new")]
    report(Settings(), Examination(READY, SourceFindings(probes), known=KNOWN), as_json=False)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    assert lines == [
        "! no longer gives price, last given on 2026-04-09",
        "- last seen alive on 2026-07-01 (recorded body)",
        "! its end is announced for 2026-05-01 (last said on 2026-07-01)",
        "- not yet seen alive by anyone",
    ]
    report(Settings(), Examination(READY, SourceFindings(probes), known=KNOWN), as_json=True)
    assert json.loads(capsys.readouterr().out)["known"]["B.bad"]["seen_on"] == "2026-07-01"


async def test_what_answers_now_is_stored_in_the_data_directory(tmp_path):
    async with arrange_service(REGISTRY, ManualClock(START)) as service:
        service.status.known = KnownSources(tmp_path, service.fetcher, service.cache.member_watch)
        probes = [replace(GOOD, source=ONE.name), replace(BAD, source=TWO.name)]
        announced = [Announcement(ONE.name, "sunset", "Mon, 01 Mar 2027 00:00:00 GMT", START.timestamp())]
        known = keep_seen(service, SourceFindings(probes, announced))
        stored = read_facts((tmp_path / SOURCE_FACTS).read_bytes())
        assert stored.keys() == {ONE.name}
        assert known[ONE.name].seen == Sighting(START.date(), "live call")
        assert known[ONE.name].announced[0].ends_on == date(2027, 3, 1)
        assert TWO.name not in known


@pytest.mark.parametrize(
    ("sources", "decided"), [(SourceSettings(), False), (SourceSettings(licence_policy="any"), True)]
)
def test_the_licence_policy_is_said_with_who_decided_it(capsys, sources, decided):
    report(Settings(sources=sources), Examination(READY), as_json=True)
    licence = json.loads(capsys.readouterr().out)["licence"]
    assert (licence["policy"], licence["decided"], licence["lost"]) == ("any", decided, {})
    report(Settings(sources=sources), Examination(READY), as_json=False)
    assert ("chosen by the operator" in capsys.readouterr().out) is decided


@pytest.mark.parametrize("as_json", [True, False])
def test_what_upstreams_announce_is_listed(capsys, as_json):
    announced = [Announcement("A.good", "sunset", "Fri, 01 May 2026 00:00:00 GMT", 1.0)]
    report(Settings(), Examination(READY, SourceFindings([GOOD], announced)), as_json=as_json)
    out = capsys.readouterr().out
    assert "Fri, 01 May 2026" in out
    assert "sunset" in out


@pytest.mark.parametrize("as_json", [True, False])
def test_hosts_that_refuse_us_are_listed(capsys, as_json):
    refused = [HostRefusal("www.cisa.gov", 403, 10.0, 3610.0)]
    report(Settings(), Examination(READY, SourceFindings([GOOD], refused=refused)), as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out)["refusals"] == [refused[0]._asdict()]
    else:
        assert "www.cisa.gov                         answered 403; retried" in out


async def test_without_live_no_source_is_requested_and_nothing_is_recorded(tmp_path, capsys):
    await doctor_command(Settings(data_dir=tmp_path), live=False, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["sources"] == []
    assert document["ready"]
    assert all(document["ready"].values())


DRIFTED = replace(
    GOOD,
    source="C.drifted",
    drift=(
        Drift("rows[].price", "absent", "answers change", True),
        Drift("rows[].note", "number instead of string", "read all the same", False),
        Drift("rows[].other", "absent", "not read", False),
    ),
)


def recording(*probes):
    """The examination of a recording of these probes."""
    sources = RecordedSources(SourceFindings(list(probes)), {"weather": "ok", "gas": "no data"}, 7)
    found = SourceFindings(list(probes), recorded=describe_recording(sources, Path("rec")))
    return Examination(READY, found)


@pytest.mark.parametrize(("probes", "status"), [((GOOD,), 0), ((GOOD, BAD), 1), ((GOOD, DRIFTED), 1)])
def test_a_recording_in_which_a_source_is_unwell_needs_a_person(capsys, probes, status):
    assert report(Settings(), recording(*probes), as_json=False) == status
    out = capsys.readouterr().out
    assert ("(sources_unwell)" in out) is bool(status)
    assert "7 exchanges recorded in rec; 1 of 2 tools returned data: not gas (no data)\n" in out


def test_of_a_source_that_drifted_the_fields_are_named(capsys):
    report(Settings(), recording(GOOD, DRIFTED), as_json=False)
    out = capsys.readouterr().out
    assert "C.drifted                            ok             drift" in out
    assert "    ! rows[].price: absent (answers change)\n" in out
    assert "    - rows[].note: number instead of string (read all the same)\n" in out
    assert "1 ok, 1 drift\n" in out


def test_fields_that_nobody_reads_are_left_out():
    assert [line.split(":")[0] for line in describe_drift(DRIFTED)] == ["! rows[].price", "- rows[].note"]


async def test_a_folder_in_use_is_refused(tmp_path):
    (tmp_path / "rec").mkdir()
    (tmp_path / "rec" / "old").write_text("")
    with pytest.raises(click.ClickException, match="is not empty"):
        await doctor_command(Settings(data_dir=tmp_path / "data"), live=True, as_json=False, record=tmp_path / "rec")


@pytest.mark.parametrize("as_json", [True, False])
def test_what_a_running_server_skips_is_listed(capsys, as_json):
    server = RunningServer("http://127.0.0.1:9/metrics", True, (LeftAlone("www.cisa.gov", "403", 60.0),))
    report(Settings(), Examination(READY, server=server), as_json=as_json)
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out)["server"] == {
            "metrics_url": "http://127.0.0.1:9/metrics",
            "answers": True,
            "left_alone": [{"name": "www.cisa.gov", "status": "403", "left_s": 60.0}],
        }
    else:
        assert "www.cisa.gov                         answered 403; retried in 60 s" in out


def test_a_source_that_is_requested_in_two_forms_has_a_line_for_each(capsys):
    probes = [replace(GOOD, form="keyed"), replace(BAD, source="A.good", form="keyless")]
    report(Settings(), Examination(READY, SourceFindings(probes)), as_json=False)
    out = capsys.readouterr().out
    assert "A.good (keyed) " in out
    assert "A.good (keyless) " in out


def test_a_database_on_a_server_is_described_with_its_leases():
    leases = [{"name": "reorg watch", "number": 3, "seconds_left": 9}, {"name": "log", "number": 1, "seconds_left": 0}]
    found = {"server": "PostgreSQL 15.6", "tables": 4, "connections": 7, "leases": leases}
    assert describe_database(None) == []
    assert describe_database(found) == [
        "the ledger is on PostgreSQL 15.6, tables 4, 7 connections",
        "  reorg watch: held by one instance for 9 s more",
        "  log: held by no instance",
    ]


REFUSING = LeftAlone("www.cisa.gov", "403", 1800.0)
FAILING = LeftAlone("Test.one", None, 30.0)


@pytest.fixture
def anyio_backend():
    return "asyncio"


def metrics():
    """Those of a service which one host refuses, and one source of which keeps failing."""
    made = Metrics()
    made.follow_closed(lambda: [("www.cisa.gov", 403, 1800.0)], lambda: [("Test.one", 30.0)])
    return made


async def test_the_metrics_of_the_server_that_runs_are_read(tmp_path):
    made, stop = metrics(), anyio.Event()
    sock = bind_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/metrics"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_metrics, Settings(serving=ServingSettings(drain_s=0)), sock, lambda: made, stop)
        with note_running(tmp_path, url):
            found = await ask_running_server(tmp_path)
        stop.set()
    assert found == RunningServer(url, True, (REFUSING, FAILING))


async def test_a_server_that_was_killed_does_not_answer(tmp_path):
    sock = bind_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/metrics"
    sock.close()
    with note_running(tmp_path, url):
        assert await ask_running_server(tmp_path) == RunningServer(url, False, ())


async def test_without_a_note_nobody_is_asked(tmp_path):
    assert await ask_running_server(tmp_path) is None


def test_only_what_is_left_alone_is_read():
    assert read_left_alone(metrics().text().decode()) == (REFUSING, FAILING)
    assert read_left_alone(Metrics().text().decode()) == ()
    with pytest.raises(ValueError, match=r".+"):
        read_left_alone("<html>this is { another server")


def test_what_was_found_is_said_in_lines():
    said = describe_server(RunningServer("http://h/metrics", True, (REFUSING, FAILING)))
    assert said[0] == "the running server (http://h/metrics) is currently skipping:"
    assert said[1].split() == "www.cisa.gov answered 403; retried in 1800 s".split()
    assert said[2].split() == "Test.one keeps failing; retried in 30 s".split()
    assert describe_server(RunningServer("u", True, ())) == ["the running server (u) uses every source"]
    assert "does not answer" in describe_server(RunningServer("u", False, ()))[0]
    assert describe_server(None) == ["no server runs on this data directory"]


KEY = "canary-0123456789abcdef"


@pytest.fixture
def internet():
    """The network of a service with the three tools on two sources."""
    internet = Internet()
    internet.serves(FIRST, {"value": 2, "said": f"your key is {KEY}"})
    internet.serves(SECOND, {"worth": 3})
    return internet


async def record(internet, folder, settings=None):
    """Record the sources and tools of a service that stores nothing."""
    recording = SourceRecording(folder, (settings or Settings()).keys)
    parts = ServiceParts(
        registry=REGISTRY,
        clock=ManualClock(START),
        transport=internet.transport,
        record=recording.record,
        in_memory=True,
        background=False,
    )
    async with Service.build(settings or Settings(), parts) as service:
        return await record_service(service, recording)


async def test_every_source_is_asked_once_and_then_what_only_tools_ask(internet, tmp_path):
    found = await record(internet, tmp_path / "rec")
    assert [(probe.source, probe.verdict) for probe in found.sources.probes] == [
        ("Test.one", "ok"),
        ("Test.two", "unreadable"),
    ]
    assert found.tools == {"number": "ok", "premium_report": "ok", "hasty": "ok"}
    assert len(internet.urls(FIRST)) == 1  # the tools found what the probe had asked
    summary = read_summary(tmp_path / "rec")
    assert (summary["recorded_at"], summary["exchanges"], summary["tools"]) == (
        START.timestamp(),
        found.exchanges,
        found.tools,
    )
    assert [each["verdict"] for each in summary["sources"]] == ["ok", "unreadable"]
    assert len(list(read_exchanges(tmp_path / "rec"))) == found.exchanges == len(internet.asked)


async def test_no_key_is_in_a_recording(internet, tmp_path):
    settings = Settings(sources=SourceSettings(keys={"FRED_API_KEY": KEY}))
    await record(internet, tmp_path / "rec", settings)
    files = [path for path in (tmp_path / "rec").rglob("*") if path.is_file()]
    assert any(b"your key is sim-removed" in path.read_bytes() for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


async def test_a_tool_without_data_is_told(internet, tmp_path):
    internet.serves(FIRST, {"worth": 3})
    found = await record(internet, tmp_path / "rec")
    assert found.tools["number"] == "no data"
    assert {probe.verdict for probe in found.sources.probes} == {"unreadable"}


async def test_what_upstreams_announce_is_in_the_summary(internet, tmp_path):
    import httpx

    internet.serves(FIRST, httpx.Response(200, json={"value": 1}, headers={"sunset": "Fri, 01 May 2026 00:00:00 GMT"}))
    found = await record(internet, tmp_path / "rec")
    assert [(each.source, each.kind) for each in found.sources.announced] == [("Test.one", "sunset")]
    assert json.loads((tmp_path / "rec" / "recording.json").read_text())["announcements"][0]["kind"] == "sunset"


async def test_a_folder_in_use_is_refused_before_anything_is_requested(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(FolderInUse):
        await record_sources(Settings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("standbys", "synchronous", "codes"),
    [(0, "", []), (2, "", ["standby_not_synchronous"]), (2, "ANY 1 (*)", [])],
)
def test_standbys_that_no_commit_waits_for_can_lose_what_was_sold(standbys, synchronous, codes):
    found = judge_standbys({"standbys": standbys, "synchronous": synchronous})
    assert [(advice.code, advice.urgent) for advice in found] == [(code, False) for code in codes]
    assert judge_standbys(None) == []


async def test_what_keeps_the_service_from_starting_is_a_finding_beside_the_settings(tmp_path, capsys):
    (tmp_path / "data").write_text("")
    assert await doctor_command(Settings(data_dir=tmp_path / "data"), live=False, as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    first = document["advice"][0]
    assert (first["code"], first["urgent"], document["ready"]) == ("cannot_start", True, {"start": False})
    assert "a file, not a directory" in first["told"]
    assert {"data_dir", "redis_url"} <= {row["setting"] for row in document["settings"]}


def test_a_book_of_the_chain_that_differs_or_is_old_is_named_with_its_block():
    mark, now = ScanMark(700, 1_800_000_000_000), 1_800_000_000_000
    sums = ChainSums(mark, now, {}, {}, Dust(), 0, [KnownDifference(bytes(20), 5, 4, 690)])
    (differs,) = judge_chain_book(sums, now)
    assert (differs.code, differs.urgent) == ("chain_differs", True)
    assert "block 690. `toolserver books chain`" in differs.told
    (behind,) = judge_chain_book(sums._replace(differences=[]), now + 3 * 3_600_000)
    assert (behind.code, behind.urgent) == ("chain_book_behind", False)
    assert "3 hours ago, through block 700" in behind.told
    assert judge_chain_book(sums._replace(differences=[], final=ScanMark(700, 0)), now) == []
    assert judge_chain_book(None, now) == []


async def test_rpc_servers_of_which_none_answers_are_named_without_their_addresses():
    closed = [f"http://127.0.0.1:{reserve_port()}/key-of-mine" for _ in range(2)]
    selling = {"enabled": True, "rpc_urls": closed, "xpub": "xpub-of-the-owner"}
    (lost,) = await examine_chain(Settings(payments=selling))
    assert (lost.code, lost.urgent) == ("chain_lost", True)
    assert "none of the 2 RPC servers (payments.rpc_urls) answers" in lost.told
    assert "key-of-mine" not in lost.told
    assert await examine_chain(Settings(payments={**selling, "enabled": False})) == []
    assert await examine_chain(Settings()) == []


def test_a_clock_that_is_off_needs_a_person():
    assert judge_clock(None) == []
    (off,) = judge_clock("This machine's clock is 7 s behind the database's.")
    assert (off.code, off.urgent) == ("clock_lost", True)
