"""The operators' page is for this machine alone: whatever may come from another one is refused, with a reason."""

import pytest

from rest_bridge.pages.operators import OperatorsFace
from rest_bridge.static_files import static_path
from tests.arranged import FACTS, client_of
from tests.calls.parts import START
from tests.catalog.tiny import TINY
from tests.rest_bridge.reports import report_of
from toolserver.clock import ManualClock

HERE = "http://127.0.0.1:9464"


def face(**more):
    async def read():
        return report_of(TINY)

    return OperatorsFace(FACTS, read, ManualClock(START), **({"bound_to": "127.0.0.1", "is_private": True} | more))


async def ask(path="/", method="GET", base_url=HERE, app=None, **headers):
    async with client_of(app or face(), base_url) as client:
        return await client.request(method, path, headers=headers)


async def test_the_page_and_its_json_are_never_kept_and_load_only_what_is_here():
    page, data = await ask(), await ask("/operators.json")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert (page.headers["cache-control"], data.headers["cache-control"]) == ("no-store", "no-store")
    assert data.json()["money"]["day"] == "2027-01-15"
    assert "access-control-allow-origin" not in page.headers
    style = await ask(static_path("css/style.css"))
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")


@pytest.mark.parametrize("name", ["http://localhost:1", "http://127.0.0.1", "http://[::1]:9464"])
async def test_names_of_this_machine_are_answered(name):
    assert (await ask(base_url=name)).status_code == 200


@pytest.mark.parametrize(
    "name", ["http://data.example", "http://127.0.0.1.evil.example:9464", "http://localhost.evil.example"]
)
async def test_a_name_that_somebody_pointed_here_is_refused(name):
    answer = await ask(base_url=name)
    assert (answer.status_code, "5.00" in answer.text) == (421, False)


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "via", "x-forwarded-host"])
@pytest.mark.parametrize("path", ["/", "/operators.json"])
async def test_a_proxy_does_not_make_it_public(name, path):
    answer = await ask(path, **{name: "192.0.2.1"})
    assert (answer.status_code, "5.00" in answer.text) == (403, False)


@pytest.mark.parametrize("path", ["/", "/operators.json", static_path("css/style.css")])
async def test_on_an_address_that_others_reach_there_is_only_the_reason(path):
    answer = await ask(path, app=face(bound_to="0.0.0.0", is_private=False))
    assert answer.status_code == 403
    assert "metrics.host is 0.0.0.0" in answer.text


async def test_it_is_only_read():
    assert (await ask(method="POST")).status_code == 405
    head = await ask(method="HEAD")
    assert (head.status_code, head.content, int(head.headers["content-length"]) > 1000) == (200, b"", True)
    again = await ask(**{"if-none-match": (await ask()).headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/operators", "/api/btc-price", "/static/x/none.css"])
async def test_nothing_else_is_here(path):
    answer = await ask(path)
    assert answer.status_code == 404
    assert "/metrics" in answer.text


async def test_what_is_asked_for_by_head_has_no_body_and_an_answer_to_get_has_its_length():
    plain = {"accept-encoding": "identity"}
    page, head = await ask(**plain), await ask(method="HEAD", **plain)
    assert int(page.headers["content-length"]) == len(page.content) > 1000
    assert head.headers["content-length"] == page.headers["content-length"]
    again = await ask(**plain, **{"if-none-match": page.headers["etag"]})
    assert again.status_code == 304
    assert "content-length" not in again.headers
    assert again.headers["cache-control"] == "no-store"


async def test_every_answer_forbids_guessing_its_type_and_telling_where_one_came_from():
    for answer in (await ask(), await ask("/none"), await ask(method="POST")):
        assert (answer.headers["x-content-type-options"], answer.headers["referrer-policy"]) == (
            "nosniff",
            "no-referrer",
        )
    refused = await ask(method="POST")
    assert (refused.headers["content-type"], refused.headers["cache-control"]) == (
        *("text/plain; charset=utf-8", "no-store"),
    )
    assert refused.text == "This page is read-only.\n"


async def test_a_file_is_kept_for_a_year_also_here():
    style = await ask(static_path("css/style.css"))
    assert style.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_a_report_is_the_same_for_some_seconds():
    clock, read = ManualClock(START), []

    async def report():
        read.append(1)
        return report_of(TINY)

    app = OperatorsFace(FACTS, report, clock, bound_to="127.0.0.1", is_private=True)
    for seconds in (0, 4.9, 0.1):
        clock.advance(seconds)
        await ask("/operators.json", app=app)
    assert len(read) == 2


@pytest.mark.parametrize("name", ["http://LOCALHOST:9464", "http://localhost"])
async def test_the_case_of_a_name_does_not_matter(name):
    assert (await ask(base_url=name)).status_code == 200


async def test_without_a_name_nothing_is_answered():
    said = []

    async def send(message):
        said.append(message)

    await face()({"path": "/", "method": "GET", "headers": [], "query_string": b""}, None, send)
    assert said[0]["status"] == 421


async def test_no_byte_of_a_body_is_sent_where_only_the_headers_were_asked_for():
    sent = {}
    for method in ("GET", "HEAD"):
        messages = []

        async def send(message, messages=messages):
            messages.append(message)

        headers = [(b"host", b"localhost")]
        await face()({"path": "/", "method": method, "headers": headers, "query_string": b""}, None, send)
        sent[method] = messages[1]["body"]
    assert (len(sent["GET"]) > 1000, sent["HEAD"]) == (True, b"")
