"""The page of a token, by clicking: balance and statement, allowances and webhooks made, tested, changed and ended."""

import csv
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.live.browser.visitor import DESK, PHONE, Theme, Visitor, visiting
from tests.live.buying import bought
from tests.live.inbox import Inbox
from tests.live.processes import Program
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def token(demo: Program) -> str:
    """A token of its own, with a call on its statement."""
    made = bought(demo, demo.ready["world_url"], 4)
    called(demo, made, "/api/pro/macro")
    return made


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    receiver = Inbox()
    try:
        yield receiver
    finally:
        receiver.close()


def called(demo: Program, token: str, path: str) -> httpx.Response:
    return httpx.get(demo.url + path, headers={"authorization": f"Bearer {token}"}, timeout=30, trust_env=False)


def opened(window: Visitor, token: str) -> Page:
    page = window.open("/account")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Show the account").click()
    page.wait_for_selector("#account[data-filled]")
    return page


def twice(item: Locator, first: str, second: str) -> None:
    item.get_by_role("button", name=first, exact=True).click()
    item.get_by_role("button", name=second, exact=True).click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_an_account_fits_is_quiet_and_bars_nobody(
    browser: Browser, demo: Program, token: str, inbox: Inbox, width: int, theme: Theme
) -> None:
    with visiting(browser, demo.url, width=width, theme=theme) as window:
        page = opened(window, token)
        expect(page.locator("#statement tbody tr").first).to_be_visible()
        make_allowance(page, f"agent {width} {theme}")
        make_webhook(page, inbox.url)
        page.locator("#webhooks").get_by_role("button", name="Send a test").last.click()
        expect(page.locator("#webhooks tr[data-kind=test]").first).to_be_visible()
        for summary in page.locator("summary").all():
            summary.click()
        window.check()
        window.check_accessibility()
        last = page.locator("#webhooks .item").last
        twice(last, "End", "End it permanently?")
        expect(page.locator("#webhooks .item")).to_have_count(0)


def test_a_statement_shows_the_purchase_and_the_call_whose_receipt_verifies(
    visitor: Visitor, demo: Program, token: str
) -> None:
    page = opened(visitor, token)
    credits = called(demo, token, "/api/payment/balance").json()["credits"]
    expect(page.locator("#balance")).to_have_text(f"{credits} credits")
    rows = page.locator("#statement tbody tr")
    expect(rows.first).to_contain_text("/api/pro/macro")
    expect(rows.last).to_contain_text("Purchase")
    expect(rows.last).to_contain_text("+200")
    rows.first.get_by_role("button", name="Verify").click()
    expect(page.locator("#receipt [data-verdict]")).to_have_text("Valid")
    visitor.check()


def test_the_token_stays_in_the_page_and_is_forgotten(visitor: Visitor, token: str) -> None:
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    page = opened(visitor, token)
    assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
    assert not any(token in url for url in [*asked, page.url])
    page.get_by_role("button", name="Forget the token").click()
    expect(page.locator("#account")).to_be_hidden()
    assert page.get_by_label("Token").input_value() == ""
    assert page.locator("#statement").inner_html() == ""
    opened(visitor, token)
    page.reload()
    assert page.get_by_label("Token").input_value() == ""
    visitor.check()


def test_what_is_no_token_and_a_token_that_nobody_has_are_refused(visitor: Visitor) -> None:
    visitor.expected = {402}
    page = visitor.open("/account")
    page.get_by_label("Token").fill("svc_live_1")
    page.get_by_role("button", name="Show the account").click()
    expect(page.locator("#trouble")).to_contain_text("That is not a token")
    page.get_by_label("Token").fill("svc_live_" + "0" * 64)
    page.get_by_role("button", name="Show the account").click()
    expect(page.locator("#trouble")).to_contain_text("invalid_token")
    expect(page.locator("#account")).to_be_hidden()
    visitor.check()


def make_allowance(page: Page, name: str) -> str:
    section = page.locator("#allowances")
    section.get_by_text("Create an allowance").click()
    section.get_by_label("Name", exact=True).last.fill(name)
    section.locator("#allowance-credits").fill("10")
    section.get_by_label("Macro dashboard").check()
    section.get_by_role("button", name="Create the allowance").click()
    expect(section.locator(".secret")).to_contain_text(name)
    return section.locator(".secret .token").inner_text()


def make_webhook(page: Page, url: str) -> str:
    section = page.locator("#webhooks")
    section.get_by_text("Create a webhook").click()
    section.get_by_label("What to deliver").select_option("macro")
    section.get_by_label("Deliver to").fill(url)
    section.get_by_role("button", name="Create the webhook").click()
    expect(section.locator(".secret")).to_contain_text("whsec_")
    return section.locator(".secret .token").inner_text()


def test_an_account_is_shown_without_an_error_under_another_name_of_the_service(
    browser: Browser, demo: Program, token: str
) -> None:
    with visiting(browser, demo.url.replace("127.0.0.1", "localhost"), width=PHONE) as window:
        page = opened(window, token)
        expect(page.get_by_text("This browser is not remembered.")).to_be_visible()
        assert page.locator(".problem:visible").count() == 0
        window.check()


def test_the_overview_sums_up_the_statement_and_gives_it_as_csv(visitor: Visitor, demo: Program) -> None:
    token = bought(demo, demo.ready["world_url"], 4)
    for path in ("/api/pro/macro", "/api/pro/macro", "/api/pro/briefing"):
        assert called(demo, token, path).status_code == 200
    page = opened(visitor, token)
    totals = {name: page.locator(f"#overview-{name}").inner_text() for name in ("spent", "calls", "uncharged", "added")}
    assert totals == {"spent": "5", "calls": "3", "uncharged": "0", "added": "200"}
    rows = page.locator("#overview .bar-row").all_inner_texts()
    assert [row.split() for row in rows] == [["/api/pro/macro", "4"], ["/api/pro/briefing", "1"]]
    balance = page.locator("#overview .chart")
    expect(balance).to_have_attribute("data-points", "9")  # before and after each of four entries, and now
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download as CSV").click()
    with open(saved.value.path(), newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    payments = [line for line in read if line["kind"] == "payment"]  # once the service has read the chain
    assert all((line["credits"], float(line["amount_usd"])) == ("", 4) for line in payments)
    lines = [line for line in read if line not in payments]
    assert [(line["kind"], line["credits"]) for line in lines[:3]] == [("call", "-1"), ("call", "-2"), ("call", "-2")]
    assert sum(int(line["credits"]) for line in lines) == 195
    assert all(line["receipt_id"].startswith("rcpt_") for line in lines[:3])
    assert token not in page.url
    assert not any(token in line.values() for line in read)
    visitor.check()


def test_an_allowance_is_made_spent_from_changed_and_ended(visitor: Visitor, demo: Program, token: str) -> None:
    page = opened(visitor, token)
    allowance = make_allowance(page, "by clicking")
    assert called(demo, allowance, "/api/pro/macro").status_code == 200
    assert called(demo, allowance, "/api/pro/whales").status_code == 402
    page.locator("#allowances .secret").get_by_role("button", name="I have saved it").click()
    assert allowance not in page.content()
    page = opened(visitor, token)
    item = page.locator("#allowances .item", has_text="by clicking")
    expect(item).to_contain_text("2 of 10 credits spent")
    item.get_by_text("Change").click()
    item.get_by_label("Maximum credits").fill("3")
    item.get_by_label("Daily maximum").fill("3")
    item.get_by_label("Ends (UTC)").fill("2031-01-01T00:00")
    item.get_by_role("button", name="Save").click()
    expect(item).to_contain_text("2 of 3 credits spent, 2 of 3 today")
    assert called(demo, allowance, "/api/pro/macro").json()["error"] == "insufficient_credits"
    twice(item, "End", "End it permanently?")
    expect(item).to_have_attribute("data-state", "revoked")
    assert called(demo, allowance, "/api/pro/macro").json()["error"] == "expired"
    visitor.check()


def test_an_allowance_sees_that_it_makes_none(visitor: Visitor, token: str) -> None:
    visitor.expected = {409}
    allowance = make_allowance(opened(visitor, token), "alone")
    page = opened(visitor, allowance)
    expect(page.locator("#allowances")).to_contain_text("cannot create allowances")
    visitor.check()


def test_a_webhook_is_made_tested_looked_into_and_ended(
    visitor: Visitor, demo: Program, token: str, inbox: Inbox
) -> None:
    page = opened(visitor, token)
    secret = make_webhook(page, inbox.url)
    item = page.locator("#webhooks .item")
    item.get_by_role("button", name="Send a test").click()
    expect(item.get_by_role("status").first).to_contain_text("Your server accepted the test: HTTP 204")
    expect(item.get_by_role("status").first).to_contain_text("a recorded example")
    (headers, body), *_ = inbox.wait(1)
    assert b'"test":true' in body.replace(b" ", b"")
    assert headers["x-service-signature"].startswith("sha256=")
    twice(item, "New secret", "Replace the secret?")
    expect(page.locator("#webhooks .secret")).not_to_contain_text(secret)
    item.get_by_role("button", name="All deliveries").click()
    row = item.locator("tr[data-kind=test]")
    expect(row).to_have_attribute("data-state", "free")
    expect(row).to_contain_text("HTTP 204")
    expect(row).to_contain_text("test (an example)")
    row.get_by_role("button", name="Send again").click()
    expect(item.get_by_role("status").first).to_contain_text("the same id and bytes. It cost nothing.")
    first, again = inbox.wait(2)
    assert (again[0]["webhook-id"], again[1]) == (headers["webhook-id"], body) == (first[0]["webhook-id"], first[1])
    twice(item, "End", "End it permanently?")
    expect(page.locator("#webhooks .list")).to_have_text("None yet.")
    visitor.check()


def test_a_webhook_with_a_condition_says_when_it_fires_and_a_wrong_address_is_explained(
    visitor: Visitor, token: str, inbox: Inbox
) -> None:
    visitor.expected = {400}
    page = opened(visitor, token)
    section = page.locator("#webhooks")
    section.get_by_text("Create a webhook").click()
    section.get_by_label("What to deliver").select_option("agent-context")
    section.get_by_label("Deliver to").fill("https://10.0.0.1/hook")
    section.get_by_label("When", exact=True).select_option("above")
    section.get_by_label("Path of the value").fill("context.markets.btc.price_usd")
    section.get_by_label("Threshold").fill("100000")
    section.get_by_label("Clears at").fill("99000")
    section.get_by_role("button", name="Create the webhook").click()
    expect(section.locator(".problem")).to_contain_text("invalid_arguments")
    section.get_by_label("Deliver to").fill(inbox.url)
    section.get_by_role("button", name="Create the webhook").click()
    item = section.locator(".item")
    expect(item).to_contain_text("when context.markets.btc.price_usd rises above 100,000")
    twice(item, "End", "End it permanently?")
    expect(item).to_have_count(0)
    visitor.check()


@proves("visitor.page")
def test_the_page_gets_visitor_tokens_and_works_for_the_fourth(visitor: Visitor, demo: Program) -> None:
    page = visitor.open("/account")
    section = page.locator("#visitor")
    tokens = []
    for _ in range(4):
        section.get_by_role("button", name="Get a visitor token").click()
        tokens.append(section.locator("code.token").inner_text(timeout=60_000))
        section.get_by_role("button", name="I have saved it").click()
        expect(section.locator("code.token")).to_have_count(0)
    visitor.check()

    assert len(set(tokens)) == 4
    answers = [called(demo, token, "/api/forex").status_code for token in tokens]
    assert answers == [200] * 4
    assert called(demo, tokens[0], "/api/pro/macro").json()["error"] == "payment_required"
