"""What is refused before a service starts: sales without a decision, and workers that have nothing in common."""

import pytest

from tests.requirements import proves
from toolserver.cli.serving_rules import check_before_serving, require_licence_decision, require_what_workers_share
from toolserver.settings import LedgerSettings, PaymentSettings, Settings, SourceSettings

SHARED = {"database_url": "postgresql://db.example/tools", "redis_url": "redis://cache.example"}


def test_several_workers_that_share_a_database_and_redis_are_allowed_and_one_needs_neither():
    require_what_workers_share(Settings(workers=2, **SHARED))
    require_what_workers_share(Settings())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"Set database_url \(TOOLSERVER_DATABASE_URL\) and redis_url \(TOOLSERVER_REDIS_URL\), or leave workers"),
        ({"redis_url": SHARED["redis_url"]}, r"Set database_url \(TOOLSERVER_DATABASE_URL\), or leave workers at 1"),
        ({"database_url": SHARED["database_url"]}, r"Set redis_url \(TOOLSERVER_REDIS_URL\), or leave workers at 1"),
    ],
)
def test_what_workers_lack_is_named(given, said):
    with pytest.raises(SystemExit, match=said):
        check_before_serving(Settings(workers=2, **given))


def test_instances_that_share_no_redis_are_refused_and_those_that_do_are_not():
    with pytest.raises(SystemExit, match=r"scaling\.instances is 3: .* Set redis_url \(TOOLSERVER_REDIS_URL\)"):
        require_what_workers_share(Settings(scaling={"instances": 3}))
    require_what_workers_share(Settings(scaling={"instances": 3}, redis_url=SHARED["redis_url"]))


def test_workers_do_not_follow_a_ledger_whose_journal_one_process_keeps():
    follows = LedgerSettings(url="https://a.example", key_id="k", secret="s" * 32)
    with pytest.raises(SystemExit, match="cannot follow a ledger"):
        require_what_workers_share(Settings(workers=2, ledger=follows, **SHARED))


@pytest.mark.parametrize(
    ("upstream", "warned"),
    [({}, True), ({"contact": "ops@data.example"}, False), ({"via": "http://127.0.0.1:9"}, False)],
)
def test_a_missing_contact_is_warned_of_where_upstreams_are_real(caplog, upstream, warned):
    check_before_serving(Settings(upstream=upstream))
    assert ("upstream.contact is not set" in caplog.text) is warned


PAYMENTS = PaymentSettings(enabled=True, rpc_urls=["http://a.example"], xpub="x")


@proves("operating.licence")
def test_selling_without_a_licence_decision_exits_with_2_and_prints_what_each_policy_leaves(capsys):
    with pytest.raises(SystemExit) as ended:
        require_licence_decision(Settings(payments=PAYMENTS))
    assert ended.value.code == 2
    told = capsys.readouterr().err
    for words in ("sources.licence_policy is not set", "=commercial: only", "premium_briefing", "sections.predictions"):
        assert words in told


@proves("operating.licence")
@pytest.mark.parametrize("policy", ["any", "no_forbidden", "commercial"])
def test_every_decision_lets_it_start_and_nothing_sold_needs_none(policy):
    require_licence_decision(Settings(payments=PAYMENTS, sources=SourceSettings(licence_policy=policy)))
    require_licence_decision(Settings())


def test_a_decision_in_the_environment_counts(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_SOURCES__LICENCE_POLICY", "any")
    require_licence_decision(Settings(payments=PAYMENTS))
