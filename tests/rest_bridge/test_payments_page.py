"""/docs/payments: the same facts for people and for agents, and true of this very server."""

import re
from dataclasses import replace
from typing import get_args

import pytest

from rest_bridge.documents import documents
from rest_bridge.pages import blocks
from rest_bridge.pages.payments import NO_CHARGE
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.engine.toy import REGISTRY
from tests.requirements import proves
from tests.rest_bridge.markup import Page
from tests.served import served
from toolserver.billing.ledger import NoCharge
from toolserver.documents import USD_PER_CREDIT, Facts, Limits, Sales, Terms
from toolserver.problems import PROBLEMS
from toolserver.registry import Registry
from toolserver.settings import X402, Ledger, Payments, Settings
from toolserver.site import paths, sales_of

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


def markdown(registry: Registry = PROJECT, facts: Facts = SELLING) -> str:
    return documents(registry, facts)["/docs/payments.md"].body.decode()


def page(registry: Registry = PROJECT, facts: Facts = SELLING) -> Page:
    return Page(documents(registry, facts)["/docs/payments"].body)


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
    told = words(plain(markdown(registry, facts)))

    assert len(told) > 300
    assert " ".join(told) in " ".join(words(content))


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
    assert not [path for path in (*documents(FREE, SELLING), *paths(FREE)) if "payments" in path]


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
    assert pytest.approx(1 / 50) == USD_PER_CREDIT
    assert "1 USD buys 50 credits" in text
    assert "credits do not expire, and purchases are final" in text
    assert "[briefing](" not in text


def test_every_reason_not_to_charge_is_in_the_table():
    assert set(NO_CHARGE) == set(get_args(NoCharge))
    assert [reason for reason in NO_CHARGE if f"| `{reason}` |" not in markdown()] == []


def test_every_refusal_of_a_call_or_a_purchase_says_what_to_do():
    about = {code for code, problem in PROBLEMS.items() if problem.about_payment}

    assert {code for code in about if f"/problems/{code}) |" in markdown()} == about
    assert all(PROBLEMS[code].advice in markdown() for code in about)


@proves("payment-error.values")
def test_a_402_has_one_of_six_values():
    assert {code for code, problem in PROBLEMS.items() if problem.status == 402} == {
        *("missing_token", "invalid_token", "insufficient_credits"),
        *("expired", "billing_unavailable", "payment_required"),
    }


def test_the_figures_are_those_of_this_server():
    terms = Terms(quote_minutes=7, grace_minutes=3, confirmations=9, safe_from_usd=250, finalized_from_usd=5000)
    facts = replace(SELLING, sales=Sales(terms=terms), limits=Limits(payment_per_minute=11, premium_per_minute=13))
    text = markdown(facts=facts)

    for told in (
        "`expires_at` is 7 minutes from then",
        "more than 3 minutes after it carries `late: true`",
        "| below 250 USD | 9 blocks on top | 18 s |",
        "| from 5,000 USD | a finalized block | 20 min |",
        "13 paid calls a minute for each token, 11 calls of payment tools",
        "Quotes: 10 in 1 min and 200 in 30 min",
    ):
        assert told in text
    assert "x402" not in text


def test_where_late_payments_are_refused_or_the_address_is_shared_that_is_said():
    text = markdown(facts=replace(SELLING, sales=Sales(terms=Terms(credits_late=False, shared_wallet=True))))

    assert "A later one is not credited." in text
    assert "30 days" not in text
    assert "All purchases share one address here" in text
    assert "from any wallet or exchange" not in text
    assert "from any wallet or exchange" in markdown()
    assert "share one address" not in markdown()


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


# --- from the settings ---

KEY = "k" * 32


@pytest.mark.parametrize(
    ("settings", "sales"),
    [
        (Settings(), None),
        (
            Settings(payments=Payments(enabled=True, rpc_urls=["http://a.example"], xpub="x", late="reject")),
            Sales(terms=Terms(credits_late=False)),
        ),
        (
            Settings(
                payments=Payments(
                    enabled=True, rpc_urls=["http://a.example"], binding="shared_wallet", shared_wallet=f"0x{'1' * 40}"
                )
            ),
            Sales(terms=Terms(shared_wallet=True)),
        ),
        (
            Settings(x402=X402(enabled=True, facilitator_url="https://f.example", pay_to=f"0x{'1' * 40}", most_usd=9)),
            Sales(transfer=False, x402_most_usd=9),
        ),
        (Settings(ledger=Ledger(url="http://a.example", key_id="k", secret=KEY)), None),
        (
            Settings(ledger=Ledger(url="http://a.example", key_id="k", secret=KEY, public_url="https://owner.example")),
            Sales(terms=None),
        ),
    ],
    ids=["nothing", "own", "shared", "x402", "follower", "follower of a shop"],
)
def test_what_is_sold_follows_from_the_settings(settings, sales):
    assert sales_of(settings) == sales


# --- how it is written ---


def test_a_page_is_written_once_and_read_twice():
    content = [
        blocks.Words("one `a|b` and **two**", lead=True),
        blocks.Heading("[x](https://x.example/)", 3),
        blocks.Rows(("A", "B"), [("`1|2`", "<b>")]),
        blocks.Points(("p", "q")),
        blocks.Code('{"a": "<b>"}', "json"),
    ]

    assert blocks.as_markdown("T", content) == (
        "# T\n\none `a|b` and **two**\n\n### [x](https://x.example/)\n\n| A | B |\n| --- | --- |\n| `1\\|2` | <b> |\n\n"
        '- p\n- q\n\n```json\n{"a": "<b>"}\n```\n'
    )
    found = "".join(blocks.as_html("T", content))
    assert found.startswith('<h1>T</h1><p class="lead">one <code>a|b</code> and <strong>two</strong></p><h3><a href=')
    assert '<th scope="row"><code>1|2</code></th><td data-label="B">&lt;b&gt;</td>' in found
    assert found.endswith("<ul><li>p</li><li>q</li></ul><pre><code>{&quot;a&quot;: &quot;&lt;b&gt;&quot;}</code></pre>")
