"""The control page."""

import re
from html.parser import HTMLParser

from tests.world.toy import T
from toolserver.world.clock import SimClock
from toolserver.world.page import page
from toolserver.world.state import WorldState


class Balanced(HTMLParser):
    """Notes the open elements and every text."""

    VOID = frozenset({"meta", "br", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.words.append(data)


async def test_the_page_shows_clock_scenarios_rules_and_counts(world):
    await world.get()
    await world.fault("latency", "Toy.*", ms=5)
    answer = await world.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    read = Balanced(answer.text)
    assert (read.open, read.wrong) == ([], [])
    words = " ".join(read.words)
    for shown in ("Fri 2027-01-15 08:00:00 UTC", "frozen", "primary_down", "Toy.*", "latency ms 5", "Toy.quote"):
        assert shown in words


async def test_every_button_of_the_page_does_something(world):
    await world.fault("geo", "Toy.rows")
    buttons = re.findall(
        r'data-method="(\w+)" data-path="([^"]+)"(?: data-body="([^"]*)")?', (await world.get("/")).text
    )
    assert len(buttons) > 20
    for method, path, body in buttons:
        content = body.replace("&quot;", '"')
        answer = await world.client.request(method, f"/_sim/{path}", content=content)
        assert answer.status_code in (200, 404), (path, answer.text)


def test_nothing_on_the_page_is_taken_for_markup():
    state = WorldState(clock=SimClock(T, frozen=True))
    state.faults.add({"match": "<script>alert(1)</script>", "kind": "drift", "form": "<b>&"}, state.world())
    text = page(state).body.decode()
    assert "<script>alert" not in text
    assert "<b>&" not in text


async def test_the_page_allows_only_its_own_style_and_script(world):
    policy = (await world.get("/")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (await world.get("/other")).status_code == 404
