"""The page in place of problem+json."""

from rest_bridge.pages.failure import failure_page, is_for_people
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page

PROBLEM = {"title": "Not found", "detail": "Nothing.", "error": "not_found", "status": 404, "request_id": "req_1"}


def test_the_page_says_what_failed_and_where_the_code_is_explained():
    page = Page(failure_page(TINY, FACTS, PROBLEM).body)
    assert page.names.count("h1") == 1
    assert "/problems/not_found" in page.links
    assert "Perhaps you meant" not in page.text


def test_people_are_those_who_accept_html_outside_of_the_api():
    def asks(accept, path="/x", method="GET"):
        return is_for_people({"path": path, "method": method, "headers": [(b"accept", accept)]})

    assert asks(b"text/html")
    assert asks(b"text/html", method="HEAD")
    assert not asks(b"text/html", path="/api/x")
    assert not asks(b"text/html", method="POST")
    assert not asks(b"*/*")
