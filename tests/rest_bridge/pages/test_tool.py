"""The page of a tool: what it is, its form, its fields, its sources, and a call that can be copied."""

import json
import re
import shlex
from dataclasses import replace

import pytest

from rest_bridge.pages.tool import is_kept, sources_of, tool_page
from tests.catalog.tiny import FACTS, PLACE, TINY
from tests.rest_bridge.made import PROJECT
from tests.rest_bridge.markup import Page
from toolserver.registry.registry import Tier
from toolserver.registry.site_facts import LimitFacts, auth

EXAMPLE = {"data": {"name": "</script><script>alert(1)</script>"}}


def body(name, registry=TINY, example=None) -> str:
    return tool_page(registry, FACTS, registry[name], example).body.decode()


def told(text, name="tool"):
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_says_what_the_tool_takes_and_gives_and_from_where():
    text = body("sights")
    page = Page(text.encode())
    assert page.faults == []
    for words in ("number, from -90 to 90", "one of tower, bridge", "data.best.height_m", "Sample.place", "free"):
        assert words in page.text
    assert PLACE.licence.terms_url in page.links
    assert "Sample &amp; Sons &lt;office&gt;" in text
    assert {"field-lat", "field-kind", "field-period", "field-names"} <= set(page.ids)


def test_many_fields_stand_in_a_part_to_open_and_few_do_not():
    many, few = body("premium_macro", PROJECT), body("earthquakes", PROJECT)
    number = many.partition('id="fields"')[2].partition("</details>")[0].count("<tr>") - 1

    assert f'<details class="rows"><summary>{number} fields</summary>' in many
    assert number > 20
    assert Page(many.encode()).faults == []
    assert 'class="rows"' not in few


def test_an_example_stays_data_in_the_page():
    text = body("digest", example=EXAMPLE)
    assert told(text, "example") == EXAMPLE
    assert "<script>alert" not in text
    assert "From the simulated world" in text


@pytest.mark.parametrize("operation", list(PROJECT), ids=lambda operation: operation.name)
def test_the_call_can_be_pasted_into_a_shell(operation):
    text = Page(tool_page(PROJECT, FACTS, operation, None).body).text
    line = next(line for line in text.splitlines() if line.startswith("curl "))
    words = shlex.split(line)
    address = next(word for word in words if word.startswith("https://"))
    assert address.startswith("https://data.example/api/")
    assert "{" not in address
    assert ("Authorization: Bearer $TOOLSERVER_TOKEN" in words) == (auth(operation) == "bearer")
    if operation.takes_body:
        assert isinstance(json.loads(words[words.index("-d") + 1]), dict)


@pytest.mark.parametrize("operation", list(PROJECT), ids=lambda operation: operation.name)
def test_without_a_script_a_form_stands_only_where_sending_it_makes_the_call(operation):
    text = tool_page(PROJECT, FACTS, operation, None).body.decode()
    form = re.search(r'<form id="form"[^>]*>', text)[0]
    if operation.method == "GET" and auth(operation) != "bearer" and "{" not in operation.path:
        assert form == f'<form id="form" action="{operation.path}">'
        assert "Without JavaScript" not in text
    else:
        assert form == '<form id="form" class="scripted">'  # and `.scripted` is displayed where scripts run
        assert "Without JavaScript" in text


def test_a_page_shows_what_is_at_hand_only_of_what_is_free_and_needs_nothing():
    storing = [operation for operation in PROJECT if is_kept(operation)]
    assert len(storing) > 30
    assert {operation.tier for operation in storing} == {Tier.FREE}
    assert f'href="/t/{storing[0].name}.json"' in body(storing[0].name, PROJECT)
    assert '.json"' not in re.sub("openapi.json", "", body("premium_briefing", PROJECT))


def test_a_token_is_asked_for_where_one_is_needed():
    for operation in PROJECT:
        assert ('id="token"' in body(operation.name, PROJECT)) == (auth(operation) == "bearer")


def test_no_page_waits_for_the_chart_library():
    assert not [operation.name for operation in PROJECT if "uplot" in body(operation.name, PROJECT)]


def shown_call(name, registry=TINY):
    text = Page(body(name, registry).encode()).text
    return next(line for line in text.splitlines() if line.startswith("curl "))


def test_the_call_is_the_shortest_one_that_works():
    assert [shown_call(name) for name in ("digest", "sights", "payment_buy_credits", "premium_deep")] == [
        "curl https://data.example/api/digest",
        "curl 'https://data.example/api/sights?lat=-90'",
        "curl https://data.example/api/payment/buy-credits -H 'Content-Type: application/json'"
        " -d '{\"amount_usd\": 1}'",
        'curl https://data.example/api/pro/deep -H "Authorization: Bearer $TOOLSERVER_TOKEN"',
    ]
    assert shown_call("webhook_unsubscribe").startswith(
        "curl -X DELETE https://data.example/api/pro/subscribe/text -H "
    )


def test_an_example_is_shown_in_its_own_letters_and_nothing_where_there_is_none():
    assert '{\n  "a": "é…"\n}' in Page(body("digest", example={"a": "é…"}).encode()).text
    assert "From the simulated world" not in body("digest")
    assert told(body("digest"), "example") is None


def test_the_script_is_told_how_the_tool_is_called():
    assert told(body("premium_deep")) == {
        "name": "premium_deep",
        "title": "Deep look",
        "method": "GET",
        "path": "/api/pro/deep",
        "site": "https://data.example",
        "auth": "bearer",
        "try": None,
        "takes_body": False,
        "enveloped": False,
        "kept": False,
        "places": {"history": "query"},
        "value": None,
        "unit": "",
        "note": "",
        "change": "",
        "sample": None,
        "pictures": [],
        "sample_words": "",
    }
    assert told(body("btc_price", PROJECT))["value"] == PROJECT["btc_price"].headline.value
    assert told(body("digest"))["kept"] is True
    assert told(body("digest"))["try"] == "/t/try"


SAMPLE = b'{"_meta": {"attribution": ["One <Bank>", "Two", "Two"]}}'


def test_a_whole_sample_is_named_to_the_script_and_the_short_one_is_for_readers_without_scripts():
    operation = TINY["premium_deep"]
    text = tool_page(TINY, FACTS, operation, {"a": 1}, {"premium_deep": SAMPLE}).body.decode()
    assert told(text)["sample"] == "/docs/samples/premium_deep.json"
    assert told(text, "example") is None
    assert "A sample answer" in text
    words = told(text)["sample_words"]
    assert f'<p class="soft">{words} · From One &lt;Bank&gt;, Two</p>' in text, (
        "nothing is larger when the script begins"
    )
    assert re.search(r"<noscript>\s*<h3 id=\"example-answer\">", text)


def test_a_price_stands_in_credits_and_dollars_and_a_free_tool_says_how_often_it_may_be_tried():
    paid = Page(body("premium_macro", PROJECT).encode()).text
    assert "A call costs 2 credits, US$0.04, and nothing if it fails" in paid
    assert f"The nearest free tool: {PROJECT['economic_data'].title}" in paid
    facts = replace(FACTS, limits=LimitFacts(page_tries_per_minute=3, page_tries_per_day=9))
    free = Page(tool_page(PROJECT, facts, PROJECT["forex"], None).body).text
    assert "3 times a minute and 9 times a day" in free
    assert "times a minute" not in paid


def test_arguments_are_completed_and_places_are_chosen_on_a_map():
    text = body("weather", PROJECT)
    assert '<datalist id="list-place"><option value="Portland, OR"></option><option value="Auckland">' in text
    assert 'list="list-place"' in text
    assert 'id="on-map"' in text
    assert '<option value="TSLA">' in body("stocks", PROJECT)
    assert 'id="on-map"' not in body("stocks", PROJECT)


def test_code_is_coloured_by_the_server_and_by_the_same_patterns_in_the_page():
    text = body("btc_price", PROJECT, {"price": 1.5})
    assert '<span class="code-word">curl</span>' in text
    assert '<span class="code-key">&quot;price&quot;</span>: <span class="code-number">1.5</span>' in text
    assert told(text, "languages").keys() == {"json", "python", "js", "sh", "toml"}


def test_a_tool_is_described_as_a_data_set_that_is_free_or_not():
    def described(name):
        script = re.search(r'<script type="application/ld\+json">(.*?)</script>', body(name))[1]
        return json.loads(script)

    data = described("digest")
    assert data["creator"] == [{"@type": "Organization", "name": "Sample & Sons <office>"}]
    assert (data["url"], data["license"]) == ("https://data.example/t/digest", "https://data.example/docs#licence")
    assert data["distribution"]["contentUrl"] == "https://data.example/api/digest"
    assert [described(name)["isAccessibleForFree"] for name in ("digest", "premium_deep")] == [True, False]


def test_only_what_is_sold_has_the_licence_of_paid_answers():
    assert [("inference and reasoning only" in body(name)) for name in ("premium_deep", "digest")] == [True, False]


def test_a_source_that_is_read_in_two_ways_is_listed_once_and_the_last_shape_counts():
    other = replace(PLACE, fresh_s=5)
    assert sources_of(replace(TINY["digest"], sources=(PLACE, other))) == [other]


def test_a_tool_that_is_never_kept_or_needs_something_shows_no_kept_answer():
    digest = TINY["digest"]
    assert is_kept(digest)
    assert not is_kept(replace(digest, ttl_s=0))
    assert [name for name in ("sights", "premium_deep", "payment_balance") if is_kept(TINY[name])] == []


def test_more_than_twenty_rows_stand_in_a_part_to_open():
    many = replace(TINY["digest"], sources=tuple(replace(PLACE, name=f"S.{number}") for number in range(21)))
    few = replace(many, sources=many.sources[:20])
    assert "<summary>21 sources</summary>" in tool_page(TINY, FACTS, many, None).body.decode()
    assert "sources</summary>" not in tool_page(TINY, FACTS, few, None).body.decode()
