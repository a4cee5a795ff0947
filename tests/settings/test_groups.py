"""Test settings for money and several instances: valid and refused combinations, and that keys are never shown."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.money.purchases.wallet import XPUB
from toolserver.cli.doctor import settings_table
from toolserver.settings import LedgerSettings, PaymentSettings, Settings, X402Settings, is_loopback

TWO = ["https://one.example/KEY1", "https://two.example/KEY2"]
ON: dict[str, Any] = {
    "enabled": True,
    "facilitator_url": "https://pay.example/x402",
    "pay_to": "0x" + "d0" * 20,
    "facilitator_token": "secret-token",
}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "192.0.2.1", "example.com", "localhost.example", "")],
    ],
)
def test_only_addresses_of_this_machine_are_loopback(host, expected):
    assert is_loopback(host) is expected


# --- selling credits


def payments(**given: Any) -> PaymentSettings:
    return PaymentSettings(**({"enabled": True, "rpc_urls": TWO, "xpub": XPUB} | given))


def test_credits_are_not_sold_unless_switched_on():
    assert PaymentSettings().enabled is False


def test_credits_can_be_sold_with_an_account_key_or_one_shared_wallet():
    assert payments().binding == "deposit"
    assert payments(binding="shared_wallet", shared_wallet="0x" + "D0" * 20, xpub=None).enabled


WRONG_PAYMENTS: dict[str, dict[str, Any]] = {
    "no server": {"rpc_urls": []},
    "no key": {"xpub": None},
    "shared without a wallet": {"binding": "shared_wallet"},
    "a wallet that is none": {"binding": "shared_wallet", "shared_wallet": "0x12"},
    "a server that is none": {"rpc_urls": ["one.example"]},
    "one server twice": {"rpc_urls": [TWO[0], TWO[0]]},
    "no confirmations": {"confirmations": 0},
    "a wait that is too long": {"wait_s": 60},
    "an unknown name": {"rpc_url": "https://one.example"},
}


@pytest.mark.parametrize("given", WRONG_PAYMENTS.values(), ids=WRONG_PAYMENTS.keys())
def test_settings_that_cannot_work_are_refused_without_showing_keys(given):
    with pytest.raises(ValidationError) as refused:
        payments(**given)
    errors = str(refused.value.errors(include_input=False, include_url=False, include_context=False))
    assert "KEY1" not in errors
    assert XPUB not in errors


def test_addresses_of_chain_servers_and_the_account_key_are_masked():
    table = str(settings_table(Settings(payments=payments())))
    assert "KEY1" not in table
    assert XPUB[10:] not in table
    assert "KEY1" not in repr(payments())


# --- x402


@pytest.mark.parametrize(
    "changed",
    [
        {"facilitator_url": None},
        {"pay_to": None},
        {"pay_to": "0x12"},
        {"facilitator_url": "http://pay.example"},
        {"facilitator_url": "ftp://pay.example"},
        {"facilitator_url": "https://a:b@pay.example"},
        {"facilitator_url": "https://pay.example/?key=1"},
        {"facilitator_url": "https://"},
        {"max_timeout_seconds": 5},
    ],
)
def test_x402_settings_that_cannot_work_are_refused(changed):
    with pytest.raises(ValidationError):
        X402Settings(**(ON | changed))


def test_a_facilitator_is_reached_over_https_or_on_this_machine():
    assert X402Settings().enabled is False
    assert (
        X402Settings(**(ON | {"facilitator_url": "https://pay.example/x/"})).facilitator_url == "https://pay.example/x"
    )
    assert X402Settings(**(ON | {"facilitator_url": "http://127.0.0.1:8402"})).enabled
    assert "secret-token" not in repr(X402Settings(**ON))


# --- the ledger


SECRET = "k" * 31 + "1"
FOLLOWS = {"url": "https://ledger.internal:8081/", "service": "news", "key_id": "news-1", "secret": SECRET}
FOLLOWED = {"port": 0, "keys": {"news-1": SECRET}, "services": {"news-1": ["news"]}}


@pytest.mark.parametrize("given", [{}, FOLLOWS, FOLLOWED, {**FOLLOWED, "port": None}])
def test_a_ledger_that_is_followed_or_follows(given):
    found = LedgerSettings(**given)
    assert found.url == ("https://ledger.internal:8081" if "url" in given else None)


@pytest.mark.parametrize(
    "given",
    [
        {**FOLLOWS, "secret": None},
        {**FOLLOWS, "key_id": None},
        {**FOLLOWS, "key_id": "with space"},
        {**FOLLOWS, "secret": "short"},
        {**FOLLOWS, "url": "ledger.internal"},
        {**FOLLOWS, "url": "ftp://ledger.internal"},
        {**FOLLOWS, "url": "https://u:p@ledger.internal"},
        {**FOLLOWS, "public_url": "https://data.example/?x=1"},
        {**FOLLOWS, "service": "b:c"},
        {**FOLLOWS, **FOLLOWED},
        {"port": 0},
        {**FOLLOWED, "services": {}},
        {**FOLLOWED, "services": {"news-1": []}},
        {**FOLLOWED, "services": {"news-1": ["b:c"]}},
        {**FOLLOWED, "keys": {"news-1": "short"}},
        {**FOLLOWED, "unknown": 1},
    ],
)
def test_ledger_settings_that_contradict_each_other_are_refused(given):
    with pytest.raises(ValidationError) as refused:
        LedgerSettings(**given)
    assert SECRET not in str(refused.value.errors(include_input=False, include_url=False, include_context=False))


@pytest.mark.parametrize("given", [FOLLOWS, FOLLOWED])
def test_the_environment_sets_it_and_keys_are_masked(given, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in given.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        monkeypatch.setenv(f"TOOLSERVER_LEDGER__{name.upper()}", text)
    settings = Settings()
    assert settings.ledger == LedgerSettings(**given)
    assert SECRET not in str(settings_table(settings)) + repr(settings)


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:6379/1", "rediss://user:secret@cache.example:6380", "unix:///run/redis.sock"]
)
def test_an_address_of_redis_is_kept_secret(url):
    settings = Settings(redis_url=url)
    assert settings.redis_url.get_secret_value() == url
    assert url not in repr(settings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"redis_url": "http://127.0.0.1"},
        {"scaling": {"instances": 0}},
        {"scaling": {"redis_deadline_s": 0}},
        {"scaling": {"redis_prefix": "with space"}},
        {"workers": 0},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValidationError):
        Settings(**wrong)
