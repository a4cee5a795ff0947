"""/docs/payments: the same facts for people and for agents, and true of this very server."""

import re
from dataclasses import replace
from functools import cache
from typing import get_args

import pytest

from rest_bridge.documents import documents
from rest_bridge.pages.payments import NO_CHARGE, payments, payments_markdown
from rest_bridge.site import document_paths
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.rest_bridge.markup import Page
from tests.served import served
from toolserver.money.ledger.protocol import NoCharge
from toolserver.registry.error_codes import PROBLEMS, concerns_payment, with_topic
from toolserver.registry.licence_table import LicenceTable
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import LimitFacts, PurchaseTerms, Sales, SiteFacts

PROJECT = Registry.load("tools")
SELLING = replace(FACTS, sales=Sales(x402_most_usd=1000))
OF_PURCHASES = (
    "Buying credits",
    "Confirm",
    "buy-credits ",
    "below_minimum",
    "PAYMENT-REQUIRED",
    "30 days",
    "1 USD buys",
)


@cache
def written(registry: Registry, facts: SiteFacts) -> dict[str, bytes]:
    return {path: page.body for path, page in documents(registry, facts).items() if path.startswith("/docs/payments")}


def markdown(registry: Registry = PROJECT, facts: SiteFacts = SELLING) -> str:
    return written(registry, facts)["/docs/payments.md"].decode()


def page(registry: Registry = PROJECT, facts: SiteFacts = SELLING) -> Page:
    return Page(written(registry, facts)["/docs/payments"])


def plain(text: str) -> str:
    """Markdown without its marks and addresses."""
    text = re.sub(r"\[([^\]]+)\]\(https?://[^)]+\)", r"\1", text)
    return re.sub(r"^(#+|-) |```\w*|`|\*\*|\|( ?---( \|)?)*", "", text, flags=re.MULTILINE)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


# --- both forms ---


@pytest.mark.parametrize("registry", [TINY, PROJECT], ids=["tiny", "project"])
@pytest.mark.parametrize("sales", [None, Sales(), Sales(terms=None, x402_most_usd=5)], ids=["none", "own", "sister"])
def test_people_and_agents_are_told_the_same(registry, sales):
    facts = replace(FACTS, sales=sales)
    _, _, content = "".join(f"\n{word}" for word in page(registry, facts).words).partition("Changelog")
    text = words(plain(markdown(registry, facts)))

    assert len(text) > 300
    assert " ".join(text) in " ".join(words(content))


async def test_the_form_is_chosen_by_accept_and_each_has_a_link_to_the_other():
    async with served(REGISTRY) as s:
        for accept, kind in (("text/html", "text/html"), ("*/*", "text/html"), ("text/markdown", "text/markdown")):
            answer = await s.client.get("/docs/payments", headers={"accept": accept})
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(kind)
            assert "Accept" in answer.headers["vary"].split(", ")
        alone = await s.client.get("/docs/payments.md")

    assert alone.content == answer.content
    assert alone.headers["content-type"].startswith("text/markdown")
    assert "/docs/payments.md" in page().links


def test_neither_is_there_where_nothing_costs_anything():
    assert not [path for path in (*documents(FREE, SELLING), *document_paths(FREE)) if "payments" in path]


# --- what it says ---


@proves("purchase.rate", "purchase.terms")
def test_every_price_is_that_of_the_registry_and_a_dollar_is_fifty_credits():
    text = markdown()
    priced = [operation for operation in PROJECT if operation.credits]

    assert priced
    for operation in priced:
        row = next(line for line in text.splitlines() if line.startswith(f"| [{operation.name}]("))
        usd = f"{operation.credits / 50:.2f}"
        assert row.endswith(f"| `{operation.method} {operation.path}` | {operation.credits} | {usd} |")
    assert "1 USD buys 50 credits" in text
    assert "Credits do not expire, and purchases are final" in text
    assert "[briefing](" not in text


def test_every_reason_not_to_charge_is_in_the_table():
    assert set(NO_CHARGE) == set(get_args(NoCharge))
    assert [reason for reason in NO_CHARGE if f"| `{reason}` |" not in markdown()] == []


@pytest.mark.slow("it causes every refusal of a call and of a purchase")
def test_every_refusal_of_a_call_or_a_purchase_says_what_to_do():
    about = {code for code, problem in PROBLEMS.items() if concerns_payment(problem)}

    assert {code for code in about if f"/problems/{code}) |" in markdown()} == about
    assert all(PROBLEMS[code].advice in markdown() for code in about)


@proves("payment-error.values")
def test_a_402_has_one_of_six_values():
    assert {code for code, problem in PROBLEMS.items() if problem.status == 402} == {
        *("missing_token", "invalid_token", "insufficient_credits"),
        *("expired", "billing_unavailable", "payment_required"),
    }


def test_the_figures_are_those_of_this_server():
    terms = PurchaseTerms(quote_minutes=7, grace_minutes=3, confirmations=9, safe_from_usd=250, finalized_from_usd=5000)
    facts = replace(SELLING, sales=Sales(terms=terms), limits=LimitFacts(payment_per_minute=11, premium_per_minute=13))
    text = markdown(facts=facts)

    for phrase in (
        "`expires_at` is 7 minutes from then",
        "more than 3 minutes after `expires_at`",
        "| below 250 USD | 9 blocks on top | 18 s |",
        "| from 5,000 USD | a finalized block | 20 min |",
        "13 paid calls a minute for each token, 11 calls of payment tools",
        "Quotes: 10 in 1 min and 200 in 30 min",
    ):
        assert phrase in text
    assert "x402" not in text


def test_where_late_payments_are_refused_or_the_address_is_shared_that_is_said():
    text = markdown(facts=replace(SELLING, sales=Sales(terms=PurchaseTerms(credits_late=False, shared_wallet=True))))

    assert "A later payment is not credited." in text
    assert "30 days" not in text
    assert "On this server all purchases share one address" in text
    assert "from any wallet or exchange" not in text
    assert "from any wallet or exchange" in markdown()
    assert "purchases share one address" not in markdown()


def test_where_a_sister_service_sells_nothing_is_claimed_of_its_terms():
    text = markdown(facts=replace(SELLING, sales=Sales(terms=None)))

    assert "Buying credits in four steps" in text
    assert "when the quote ends" in text
    assert "blocks on top" not in text


def test_where_only_x402_is_taken_there_are_no_quotes():
    text = markdown(facts=replace(SELLING, sales=Sales(transfer=False, x402_most_usd=1000)))

    assert "up to 1,000 USD at once" in text
    assert "buy-credits \\" not in text


def test_a_server_that_sells_nothing_says_so():
    for text in (markdown(facts=FACTS), page(facts=FACTS).text):
        assert "This server sells no credits." in text
        assert [words for words in OF_PURCHASES if words in text] == []
    assert "| `stale_data` |" in markdown(facts=FACTS)


def test_simulated_money_is_called_so():
    assert "Credits cost nothing here" in markdown(facts=replace(SELLING, simulated=True))
    assert "Credits cost nothing" not in markdown() + markdown(facts=replace(FACTS, simulated=True))


def test_signing_in_from_a_host_is_explained_only_where_it_is_possible():
    assert "Signing in from a host" not in markdown(facts=SELLING)
    assert "`https://data.example/api/mcp/auth`" in markdown(facts=replace(SELLING, oauth=True))


def test_how_often_quotes_are_given_is_said_only_where_they_are_given_and_limited():
    assert "Quotes:" in markdown()
    assert "Quotes:" not in markdown(TINY)
    assert "Quotes:" not in markdown(REGISTRY)
    assert "Quotes:" not in markdown(facts=replace(SELLING, sales=None))


def test_the_call_to_copy_needs_no_argument_and_is_left_out_where_every_paid_tool_needs_one():
    needy = replace(TINY["sights"], name="premium_sights", path="/api/pro/sights", tier=Tier.PREMIUM, credits=2)
    assert "https://data.example/api/pro/deep" in markdown(Registry([needy, TINY["premium_deep"]]))
    assert "https://data.example/api/pro/sights" not in markdown(Registry([needy]))


def test_refusals_of_x402_are_listed_only_where_it_is_taken():
    codes = {problem.code for problem in with_topic("x402")}
    purchases = {problem.code for problem in with_topic("purchase")}
    calls = {problem.code for problem in with_topic("paid_call")}

    def listed(sales):
        text = markdown(facts=replace(FACTS, sales=sales))
        return {code for code in codes | purchases | calls if f"/problems/{code}) |" in text}

    assert listed(Sales(x402_most_usd=5)) == codes | purchases | calls
    assert listed(Sales()) == purchases | calls
    assert listed(None) == calls


def test_the_table_of_licences_stands_there_where_there_is_one():
    licences = LicenceTable({"premium_deep": ["windows", "notes"]}, {"no_forbidden": {"premium_deep": {"windows": []}}})
    row = "| `premium_deep` | windows | nothing lost |"
    assert row in payments_markdown(TINY, SELLING, licences).body.decode()
    assert "nothing lost" not in payments_markdown(TINY, SELLING).body.decode()
    assert b'<td data-label="lost with `no_forbidden`">windows</td>' in payments(TINY, SELLING, licences).body
