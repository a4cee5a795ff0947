"""The pages of error codes, which the `type` of every problem leads to."""

from urllib.parse import urlsplit

from tests.catalog.tiny import FACTS, TINY
from tests.requirements import proves
from tests.rest_bridge.made import html_pages
from toolserver.registry.error_codes import PROBLEMS, body


@proves("errors.type")
def test_every_problem_has_a_page_that_its_type_leads_to():
    found = html_pages(TINY)
    for code, problem in PROBLEMS.items():
        page = found[f"/problems/{code}"]
        assert problem.title in page.text
        assert code in page.text
        told = body(code, "why", facts=FACTS, request_id="r1")
        assert urlsplit(told.get("type", f"/problems/{code}")).path == f"/problems/{code}"
