"""What a server says about itself in public follows from its settings."""

import pytest

from toolserver.registry.site_facts import LimitFacts, PurchaseTerms, Sales, SiteFacts
from toolserver.serving.public_facts import read_public_facts, read_sales
from toolserver.settings import (
    LedgerSettings,
    LimitSettings,
    PaymentSettings,
    Settings,
    UpstreamSettings,
    X402Settings,
)

KEY = "k" * 32


@pytest.mark.parametrize(
    ("settings", "sales"),
    [
        (Settings(), None),
        (
            Settings(payments=PaymentSettings(enabled=True, rpc_urls=["http://a.example"], xpub="x", late="reject")),
            Sales(terms=PurchaseTerms(credits_late=False)),
        ),
        (
            Settings(
                payments=PaymentSettings(
                    enabled=True, rpc_urls=["http://a.example"], binding="shared_wallet", shared_wallet=f"0x{'1' * 40}"
                )
            ),
            Sales(terms=PurchaseTerms(shared_wallet=True)),
        ),
        (
            Settings(
                x402=X402Settings(enabled=True, facilitator_url="https://f.example", pay_to=f"0x{'1' * 40}", most_usd=9)
            ),
            Sales(transfer=False, x402_most_usd=9),
        ),
        (Settings(ledger=LedgerSettings(url="http://a.example", key_id="k", secret=KEY)), None),
        (
            Settings(
                ledger=LedgerSettings(
                    url="http://a.example", key_id="k", secret=KEY, public_url="https://owner.example"
                )
            ),
            Sales(terms=None),
        ),
    ],
    ids=["nothing", "own", "shared", "x402", "follower", "follower of a shop"],
)
def test_what_is_sold_follows_from_the_settings(settings, sales):
    assert read_sales(settings) == sales


def test_the_facts_are_those_of_the_settings():
    settings = Settings(
        limits=LimitSettings(
            daily=7,
            spacing_s=5,
            personal_per_minute=3,
            premium_per_minute=2,
            page_tries_per_minute=4,
            page_tries_per_day=6,
        ),
        upstream=UpstreamSettings(contact="ops@data.example", via="http://127.0.0.1:9"),
        ledger=LedgerSettings(url="http://a.example", key_id="k", secret=KEY),
    )

    assert read_public_facts(settings, "https://data.example:8443/live") == SiteFacts(
        base_url="https://data.example:8443/live",
        source="data.example",
        contact="ops@data.example",
        simulated=True,
        ledger="followed",
        limits=LimitFacts(
            free_per_day=7,
            free_spacing_s=5,
            payment_per_minute=3,
            premium_per_minute=2,
            page_tries_per_minute=4,
            page_tries_per_day=6,
        ),
    )


def test_a_server_with_the_default_settings_has_its_own_ledger_and_real_data():
    facts = read_public_facts(Settings(), "http://127.0.0.1:8080")

    assert (facts.ledger, facts.simulated, facts.source) == ("embedded", False, "127.0.0.1")


@pytest.mark.parametrize(
    ("servers", "simulated"),
    [
        (["http://w/u/a/", "http://w/u/b/"], True),
        (["http://w/u/a/", "https://rpc.example/"], False),
        (["http://w.example/u/a/"], False),
    ],
)
def test_a_demo_wallet_is_offered_only_where_the_whole_chain_is_simulated(servers, simulated):
    own = PaymentSettings(enabled=True, rpc_urls=servers, binding="shared_wallet", shared_wallet=f"0x{'1' * 40}")
    assert read_sales(Settings(payments=own, upstream=UpstreamSettings(via="http://w"))).demo_wallet is simulated
    assert not read_sales(Settings(payments=own)).demo_wallet
