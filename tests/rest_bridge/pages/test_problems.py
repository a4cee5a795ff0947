"""The pages of error codes, which the `type` of every problem leads to."""

import json
from dataclasses import replace
from urllib.parse import urlsplit

from rest_bridge.pages.problems import problem_page, problems_page
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.rest_bridge.made import html_pages
from tests.rest_bridge.markup import Page
from toolserver.registry.error_codes import PROBLEMS, body, concerns_payment, example
from toolserver.registry.site_facts import Sales


@proves("errors.type")
def test_every_problem_has_a_page_that_its_type_leads_to():
    documents = html_pages(TINY)
    for code, problem in PROBLEMS.items():
        page = documents[f"/problems/{code}"]
        assert problem.title in page.text
        assert code in page.text
        sent = body(code, "why", facts=FACTS, request_id="r1")
        assert urlsplit(sent.get("type", f"/problems/{code}")).path == f"/problems/{code}"


def test_codes_about_payment_are_listed_only_where_something_is_sold():
    def listed(registry):
        links = Page(problems_page(registry, FACTS).body).links
        return [link.removeprefix("/problems/") for link in links if link.startswith("/problems/")]

    assert listed(TINY) == list(PROBLEMS)
    assert listed(FREE) == [code for code, problem in PROBLEMS.items() if not concerns_payment(problem)]
    assert 5 < len(listed(FREE)) < len(listed(TINY)) - 5


def test_the_page_of_a_code_shows_the_body_as_it_would_be_sent_and_what_to_do():
    problem = PROBLEMS["rate_limited"]
    page = Page(problem_page(TINY, FACTS, problem).body)
    shown = json.loads(page.text[page.text.index("{\n") : page.text.index("\n}") + 2])
    assert shown == example(problem, facts=FACTS, request_id="…")
    assert '\n  "request_id": "…"' in page.text
    assert problem.advice.replace("`", "") in page.text
    for each in (page, Page(problems_page(TINY, FACTS).body)):
        assert (
            "On MCP, the same JSON is the text of a tool result with isError, and the HTTP status is 200." in each.text
        )


def test_a_code_about_payment_leads_to_where_credits_are_bought_and_no_other_does():
    """Every page of a service that sells has one such link at its top."""

    selling = replace(FACTS, sales=Sales())

    def count(registry, code):
        return Page(problem_page(registry, selling, PROBLEMS[code]).body).links.count("/buy")

    assert (count(TINY, "insufficient_credits"), count(TINY, "not_found")) == (2, 1)
    assert count(FREE, "insufficient_credits") == count(FREE, "not_found")
