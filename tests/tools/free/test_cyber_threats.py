"""The cyber threats tool, and how dangerous strings are written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.cisa
import tools.simulated.feodo
import tools.simulated.openphish
import tools.simulated.threatfox
import tools.simulated.urlhaus  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.cyber_threats import cyber_threats
from tools.parsing.defang import defang, literal
from tools.simulated.cisa import catalogue
from tools.simulated.openphish import phishing_urls
from tools.simulated.threatfox import indicators
from tools.simulated.urlhaus import urls
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import World

FEEDS = {
    "URLhaus": "URLhaus.recent_urls",
    "ThreatFox": "ThreatFox.recent_iocs",
    "CISA KEV": "CISA.known_exploited",
    "Feodo Tracker": "FeodoTracker.c2_servers",
    "OpenPhish": "OpenPhish.feed",
}


@pytest.mark.parametrize(
    ("indicator", "written"),
    [
        ("http://a.b.example/x.y?z=1&copy=2", "hxxp://a[.]b[.]example/x.y?z=1&copy=2"),
        ("HTTPS://A.example", "hxxpS://A[.]example"),
        ("192.0.2.1:443", "192[.]0[.]2[.]1:443"),
        ("evil.example", "evil[.]example"),
        ("user@evil.example", "user[@]evil[.]example"),
        ("ftp://evil.example/a", "ftp://evil[.]example/a"),
        ("https://good.example/?to=http://evil.example/", "hxxps://good[.]example/?to=hxxp://evil.example/"),
        ("http:\\\\evil.example\\x", "hxxp:\\\\evil[.]example\\x"),
        ("5d41402abc4b2a76b9719d911017c592", "5d41402abc4b2a76b9719d911017c592"),
        ("", ""),
    ],
)
def test_a_dangerous_string_is_written_so_that_it_is_no_link(indicator, written):
    assert defang(indicator) == written


@given(st.text(max_size=400))
def test_no_text_comes_out_as_a_link(text):
    written = defang(text)
    assert len(written) <= 300
    assert not re.search(r"https?:", written, re.IGNORECASE)
    assert "@" not in written.replace("[@]", "")


@given(st.from_regex(r"https?://[a-z0-9.@:-]{1,40}/[a-z0-9.&;=@]{0,40}", fullmatch=True))
def test_taking_the_marks_out_again_gives_the_url(url):
    assert defang(url).replace("hxxp", "http").replace("[.]", ".").replace("[@]", "@") == literal(url)


async def test_the_newest_five_of_each_feed_are_told_newest_first(compose):
    made = await compose(cyber_threats)

    assert len(made.json) == 25
    assert {item["source"] for item in made.json} == set(FEEDS)
    dates = [item["date"] for item in made.json]
    assert dates[-5:] == [None] * 5
    assert [d[:10] for d in dates[:-5]] == sorted((d[:10] for d in dates[:-5]), reverse=True)
    assert made.notes.warnings == []


async def test_the_items_are_those_of_the_world(compose):
    made = await compose(cyber_threats)

    world = World(1, NOW)
    told = {name: [i["indicator"] for i in made.json if i["source"] == name] for name in FEEDS}
    assert told["URLhaus"] == [defang(u.url) for u in urls(world, NOW - 86400)[:5]]
    assert told["ThreatFox"] == [defang(i.value) for i in indicators(world, NOW - 86400)[:5]]
    assert told["CISA KEV"] == [v["cveID"] for v in catalogue(world)[:5]]
    assert told["OpenPhish"] == [defang(u) for u in phishing_urls(world)[:5]]
    assert len(told["Feodo Tracker"]) == 5


async def test_nothing_dangerous_is_a_link_and_references_lead_to_the_trackers(compose):
    made = await compose(cyber_threats)

    assert all("http" not in item["indicator"] for item in made.json)
    hosts = {item["reference"].split("/")[2] for item in made.json if item["reference"]}
    assert hosts == {"urlhaus.abuse.ch", "threatfox.abuse.ch", "feodotracker.abuse.ch", "www.cisa.gov"}


async def test_an_exploited_vulnerability_carries_its_due_date_and_ransomware_use(compose):
    made = await compose(cyber_threats)

    for item, raw in zip([i for i in made.json if i["source"] == "CISA KEV"], catalogue(World(1, NOW)), strict=False):
        known = ", known ransomware use" if raw["knownRansomwareCampaignUse"] == "Known" else ""
        assert item["severity_note"] == f"due {raw['dueDate']}{known}"
        assert (item["date"], item["threat"]) == (raw["dateAdded"], raw["vulnerabilityName"])


@pytest.mark.parametrize("name", FEEDS)
async def test_a_feed_that_fails_is_missing_and_warned_of(compose, name):
    made = await compose(cyber_threats, down={FEEDS[name], f"{FEEDS[name]}_copy"})

    assert {item["source"] for item in made.json} == set(FEEDS) - {name}
    assert [(w.code, w.source) for w in made.notes.warnings] == [("section_unavailable", FEEDS[name])]


async def test_where_cisa_refuses_its_copy_answers_under_its_own_name(compose):
    made = await compose(cyber_threats, forms={"CISA.known_exploited": "geo"})

    whole = await compose(cyber_threats)
    assert made.json == whole.json
    used = {n.source.name: n.status for n in made.notes.sources if n.section == "data.cisa_kev"}
    assert used == {"CISA.known_exploited": "error", "CISA.known_exploited_copy": "fallback"}
    assert [(w.code, w.source) for w in made.notes.warnings] == [("fallback_used", "CISA.known_exploited")]


async def test_an_empty_list_of_command_servers_is_an_answer(compose):
    made = await compose(cyber_threats, forms={"FeodoTracker.c2_servers": "empty"})

    assert len(made.json) == 20
    assert made.notes.warnings == []


async def test_when_only_the_empty_list_is_left_nothing_is_claimed(compose):
    others = {*FEEDS.values(), "CISA.known_exploited_copy"} - {"FeodoTracker.c2_servers"}
    with pytest.raises(SourceError):
        await compose(cyber_threats, down=others, forms={"FeodoTracker.c2_servers": "empty"})


async def test_when_no_feed_answers_nothing_is_claimed(compose):
    with pytest.raises(SourceError):
        await compose(cyber_threats, down={"*"})


async def test_a_key_gives_the_same_from_the_trackers_apis(compose):
    made = await compose(cyber_threats)
    keyed = await compose(cyber_threats, keys={"ABUSE_CH_AUTH_KEY": "sim-1"})
    assert keyed.json == made.json


def test_the_tool_is_not_in_the_core():
    assert (operation_of(cyber_threats).toolset, operation_of(cyber_threats).ttl_s) == ("all", 60)
