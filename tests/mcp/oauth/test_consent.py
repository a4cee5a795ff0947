"""What each form of the consent page does, and what it says when it cannot."""

import json
from datetime import UTC, datetime

import pytest

from tests.mcp.oauth.served import ALLOWANCES, BACK, BOUGHT, NAMES, OWNER, TX, answered, serving
from toolserver.errors import ChainUnavailable, InvalidArguments, NoMatchingTransfer, PaymentPending, RateLimited
from toolserver.mcp.oauth.consent import MOST_HASH, ConsentPurchase, explain
from toolserver.mcp.oauth.store import hash_secret, unseal_with
from toolserver.registry.site_facts import PurchaseTerms, Sales


async def at_page(served):
    await served.client.register()
    return await served.browser.visit(served.client.url())


async def test_the_defaults_are_those_of_the_contract_and_can_be_changed():
    async with serving() as served:
        await at_page(served)
        shown = served.browser.fields("allow")
        assert (shown["credits"], shown["days"], shown["token"]) == ("250", "30", "")
        await served.allow(credits="7", days="1")
        (made,) = await served.allowances()
        assert (made.credits, made.expires_at - made.created_at) == (7, 86_400_000)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"token": ""}, "Paste your token"),
        ({"token": "svc_live_" + "00" * 32}, "malformed or unknown"),
        ({"token": "canary-secret"}, "malformed or unknown"),
        ({"credits": "0"}, "Credits must be a whole number"),
        ({"credits": "1.5"}, "Credits must be a whole number"),
        ({"credits": "1000001"}, "Credits must be a whole number from 1 to 1,000,000."),
        ({"credits": "9999999"}, "Credits must be a whole number"),
        ({"days": "0"}, "Days must be a whole number from 1 to 365."),
        ({"days": "366"}, "Days must be a whole number"),
        ({"days": ""}, "Days must be a whole number"),
        ({"days": "١"}, "Days must be a whole number"),
    ],
)
async def test_a_form_that_cannot_be_granted_says_why_and_can_be_sent_again(fields, said):
    async with serving() as served:
        await at_page(served)
        page = await served.browser.submit("allow", **({"token": OWNER, "credits": "99"} | fields))
        assert page.status_code == 422
        assert said in page.text
        assert "svc_live_0" not in page.text
        assert OWNER not in page.text
        assert "canary" not in page.text
        if "credits" not in fields:
            assert served.browser.fields("allow")["credits"] == "99"
        assert not await served.allowances()
        answered(await served.browser.submit("allow", token=OWNER, credits="5", days="5"))


@pytest.mark.parametrize(("credits", "days"), [("1", "1"), ("1000000", "365")])
async def test_terms_at_their_bounds_are_granted(credits, days):
    async with serving() as served:
        await served.allow(credits=credits, days=days)
        (made,) = await served.allowances()
        assert (made.credits, made.expires_at - made.created_at) == (int(credits), int(days) * 86_400_000)


async def test_the_name_of_an_allowance_has_a_bound():
    async with serving() as served:
        back = f"http://127.0.0.1/{'a' * 100}"
        await served.client.register(client_name="n" * 80, redirect_uris=[BACK, back])
        await served.allow()
        (made,) = await served.allowances()
        assert made.name == ("n" * 60 + " (a program on this device (127.0.0.1:3000))")[:100]


async def test_what_was_typed_is_kept_when_the_form_is_refused():
    async with serving() as served:
        await at_page(served)
        for credits, days in (("77", "8"), ("1234567", "9")):
            await served.browser.submit("allow", token="", credits=credits, days=days)
            shown = served.browser.fields("allow")
            assert (shown["credits"], shown["days"]) == (credits, days)
        await served.browser.submit("allow", token="", credits="12345678", days="x")
        shown = served.browser.fields("allow")
        assert (shown["credits"], shown["days"]) == ("250", "30")


async def test_a_request_can_be_answered_until_its_last_moment():
    async with serving() as served:
        page = await at_page(served)
        served.clock.advance(2 * 3600 - 1)
        assert (await served.browser.visit(str(page.url))).status_code == 200
        served.clock.advance(1)
        assert (await served.browser.visit(str(page.url))).status_code == 410


async def test_a_pack_smaller_than_the_default_limits_what_is_offered():
    for bought, offered in ((100, "100"), (1000, "250")):
        async with serving() as served:
            served.sales.outcomes, served.sales.seen = [bought], TX
            await at_page(served)
            page = await served.browser.submit("buy", amount_usd="2")
            assert BOUGHT in page.text
            assert served.browser.fields("allow")["credits"] == offered


async def test_an_allowance_cannot_give_an_allowance():
    async with serving() as served:
        await served.connect()
        code = (await served.allow())["code"]
        child = (await served.service.oauth.store.find_secret(hash_secret(code))).secret
        await at_page(served)
        page = await served.browser.submit("allow", token=unseal_with(code, child.sealed))
        assert page.status_code == 422
        assert "This token is an allowance" in page.text


async def test_saying_no_is_told_to_the_client_and_cannot_be_taken_back():
    async with serving() as served:
        await at_page(served)
        page = served.browser.page
        told = answered(await served.browser.submit("deny"))
        assert (told["error"], told["state"], told["iss"]) == ("access_denied", "st&ate", served.client.resource)
        served.browser.page = page
        again = await served.browser.submit("allow", token=OWNER)
        assert again.status_code == 409
        assert "already been answered" in again.text
        assert not await served.allowances()


async def test_a_page_that_is_sent_twice_gives_one_code_and_one_allowance():
    async with serving() as served:
        await at_page(served)
        page = served.browser.page
        answered(await served.browser.submit("allow", token=OWNER))
        served.browser.page = page
        again = await served.browser.submit("allow", token=OWNER)
        assert again.status_code == 409
        assert (await served.browser.visit(str(page.url))).status_code == 410
        assert len(await served.allowances()) == 1


async def test_of_two_forms_at_the_same_moment_the_second_allowance_is_ended():
    async with serving() as served:
        await at_page(served)
        store = served.service.oauth.store
        request = await store.find_request(hash_secret(served.browser.fields("deny")["request"]))
        await store.deny_request(request.id, 1)

        async def as_before(id):
            return request

        store.find_request = as_before
        page = await served.browser.submit("allow", token=OWNER)
        assert "already been answered in another window" in page.text
        assert [made.revoked_at is not None for made in await served.allowances()] == [True]


async def test_a_page_that_is_opened_twice_works_in_both_windows():
    async with serving() as served:
        first = await at_page(served)
        second = await served.browser.visit(served.client.url())
        assert first.url != second.url
        answered(await served.browser.submit("allow", token=OWNER))
        assert (await served.browser.visit(str(first.url))).status_code == 200
        answered(await served.browser.submit("allow", token=OWNER))


async def test_a_request_expires_after_two_hours():
    async with serving() as served:
        page = await at_page(served)
        served.clock.advance(2 * 3600)
        late = await served.browser.visit(str(page.url))
        assert (late.status_code, "expired" in late.text) == (410, True)
        served.browser.page = page
        assert (await served.browser.submit("allow", token=OWNER)).status_code == 409


async def test_a_purchase_that_goes_wrong_can_be_mended_or_left():
    async with serving() as served:
        served.sales.outcomes = [NoMatchingTransfer("It moves no USDC to this address.")]
        await at_page(served)
        page = await served.browser.submit("buy", amount_usd="0.5")
        assert page.status_code == 422
        page = await served.browser.submit("buy", amount_usd="<b>")
        assert "<b>" not in page.text
        await served.browser.submit("buy", amount_usd="5")
        await served.browser.ask_for_hash()
        page = await served.browser.submit("paid", tx_hash=" ")
        assert "Paste the hash" in page.text
        await served.browser.submit("paid", tx_hash="0x<script>")
        page = await served.browser.reload()
        assert "moves no USDC" in page.text
        assert "<script>" not in page.text
        assert served.browser.fields("paid")["tx_hash"] == "0x<script>"
        page = await served.browser.submit("back")
        assert served.browser.fields("buy")["amount_usd"] == "5"


async def test_while_the_chain_is_away_the_page_waits_and_says_so():
    async with serving() as served:
        served.sales.outcomes = [ChainUnavailable("The chain cannot be read."), PaymentPending("x"), 100]
        await at_page(served)
        await served.browser.submit("buy", amount_usd="2")
        await served.browser.ask_for_hash()
        await served.browser.submit("paid", tx_hash=TX)
        page = await served.browser.reload()
        assert "The chain cannot be read." in page.text
        await served.browser.submit("unpaid")
        await served.browser.ask_for_hash()
        assert served.browser.fields("paid")["tx_hash"] == ""
        await served.browser.submit("paid", tx_hash=TX)
        assert "Looking for the transaction" in (await served.browser.reload()).text
        assert BOUGHT in (await served.browser.reload()).text
        assert [claim.memo for claim in served.sales.claims] == [f"svc_buy_{'9' * 32}"] * len(served.sales.claims)


async def test_a_payment_is_seen_by_itself_and_nobody_is_asked_for_itshash_secret():
    async with serving() as served:
        served.sales.outcomes = [PaymentPending("not yet", confirmations=1, required=3), 100]
        await at_page(served)
        page = await served.browser.submit("buy", amount_usd="2")
        assert "detects it automatically" in page.text
        assert 'name="tx_hash"' not in page.text
        assert "detects it automatically" in (await served.browser.reload()).text
        served.sales.seen = TX
        assert "1 of 3 confirmations" in (await served.browser.reload()).text
        assert BOUGHT in (await served.browser.reload()).text
        assert {claim.tx_hash for claim in served.sales.claims} == {TX}
        assert set(served.sales.looked) == {f"svc_buy_{'9' * 32}"}
        looked = len(served.sales.looked)
        await served.browser.visit(str(page.url))
        assert len(served.sales.looked) == looked  # what was found is kept


@pytest.mark.parametrize("away", [ChainUnavailable("The chain cannot be read."), RateLimited("Too many.")])
async def test_a_look_for_a_payment_that_fails_only_means_another_look(away):
    async with serving() as served:
        served.sales.seen = away
        await at_page(served)
        page = await served.browser.submit("buy", amount_usd="2")
        assert (page.status_code, "detects it automatically" in page.text, str(away) in page.text) == (200, True, False)


async def test_looks_for_a_payment_count_with_the_payment_tools():
    async with serving(limited=True) as served:
        await at_page(served)
        page = await served.browser.submit("buy", amount_usd="2")
        for _ in range(65):
            await served.browser.visit(str(page.url))
        assert len(served.sales.looked) < 60


async def test_where_purchases_share_an_address_the_page_asks_for_thehash_secret():
    async with serving(sells=Sales(terms=PurchaseTerms(shared_wallet=True))) as served:
        served.sales.seen = TX
        await at_page(served)
        page = await served.browser.submit("buy", amount_usd="2")
        assert served.browser.fields("paid")["tx_hash"] == ""
        assert "refresh" not in page.text
        assert served.sales.looked == []


async def test_whoever_types_a_hash_is_not_interrupted():
    async with serving() as served:
        await at_page(served)
        await served.browser.submit("buy", amount_usd="2")
        page = await served.browser.ask_for_hash()
        assert "refresh" not in page.text
        assert "<script" not in page.text
        assert served.browser.fields("paid")["tx_hash"] == ""


async def test_where_nothing_is_sold_by_transfer_the_page_offers_no_purchase():
    async with serving(names=(*ALLOWANCES, NAMES[2])) as served:
        page = await at_page(served)
        assert "No token yet?" not in page.text
        served.browser.page = page
        sent = {"request": served.browser.fields("deny")["request"], "do": "buy", "amount_usd": "5"}
        answer = await served.browser.http.post(page.url.path, data=sent)
        assert "does not offer that" in answer.text


async def test_an_unknown_button_only_shows_the_page():
    async with serving() as served:
        page = await at_page(served)
        sent = {"request": served.browser.fields("deny")["request"], "do": "anything"}
        assert (await served.browser.http.post(page.url.path, data=sent)).status_code == 200


def test_a_refusal_is_a_sentence_without_the_name_of_a_field():
    assert explain(InvalidArguments("amount_usd: must be more", errors=[])) == "Must be more"
    assert explain(InvalidArguments("Give more", errors=[])) == "Give more"


QUOTE = {
    "wallet": "0x1",
    "memo": "svc_buy_1",
    "amount_atomic": 5_250_000,
    "quote": {"credits": 262},
    "payment_uri": "ethereum:0x1",
    "expires_at": "2027-01-15T08:30:00Z",
}


def test_a_quote_is_kept_and_shown_without_its_secret():
    bought = ConsentPurchase.of_quote(QUOTE)
    assert ConsentPurchase.read(bought.write()) == bought
    shown = bought.paid_by("0x" + "1" * 500).payment
    assert (shown.wallet, shown.amount_usd, shown.credits, shown.review) == ("0x1", "5.25", 262, None)
    assert shown.expires_at == datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
    assert (shown.confirmations, shown.required, shown.tx_hash) == (None, None, "0x" + "1" * 98)
    assert (shown.uri, MOST_HASH) == ("ethereum:0x1", 100)
    assert "svc_buy_" not in repr(shown)


def test_the_claim_is_what_payment_confirm_takes():
    bought = ConsentPurchase.of_quote(QUOTE | {"amount_atomic": 1_000_000, "review": "large"}).paid_by("0xab")
    assert bought.claim == {"tx_hash": "0xab", "nonce": "svc_buy_1"}
    assert (bought.payment.amount_usd, bought.payment.review) == ("1", "large")
    assert ConsentPurchase.read(bought.write()) == bought
    assert bought.payment.review == "large"
    assert bought.paid_by("").payment.tx_hash == ""
    assert bought.payment.tx_hash == "0xab", "a purchase does not change by itself"


@pytest.mark.parametrize(
    ("atomic", "shown"), [(10_000_000, "10"), (100_000, "0.1"), (1, "0.000001"), (1_234_567, "1.234567")]
)
def test_an_amount_is_shown_with_the_digits_that_it_has(atomic, shown):
    assert ConsentPurchase.of_quote(QUOTE | {"amount_atomic": atomic}).payment.amount_usd == shown


def test_a_time_of_another_zone_is_shown_in_utc():
    bought = ConsentPurchase.of_quote(QUOTE | {"expires_at": "2027-01-15T10:30:00+02:00"})
    assert bought.payment.expires_at == datetime(2027, 1, 15, 8, 30, tzinfo=UTC)


def test_a_purchase_that_an_earlier_version_stored_is_read():
    stored = {"wallet": "0x1", "memo": "m", "amount_usd": "5", "credits": 250, "uri": "ethereum:0x1"}
    stored |= {"expires_at": "2027-01-15T08:30:00Z", "review": None, "tx_hash": "0xab"}
    bought = ConsentPurchase.read(json.dumps(stored))
    assert (bought.claim, bought.payment.credits) == ({"tx_hash": "0xab", "nonce": "m"}, 250)
    assert bought.payment.expires_at == datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
    assert json.loads(bought.write()).keys() == stored.keys()
