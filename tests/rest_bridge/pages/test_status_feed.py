"""The Atom feed of changes, read by the parser that reads other people's feeds."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from rest_bridge.pages.status import write_feed
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.statuses import CHANGE, status_of

ATOM = "{http://www.w3.org/2005/Atom}"
BACK = CHANGE | {"at": "2027-01-15T07:30:00Z", "kind": "back", "reason": "ok"}


def feed(*changes):
    return ET.fromstring(write_feed(FACTS, status_of(TINY, changes=changes)).body)


def test_every_change_is_an_entry_with_an_id_that_stays():
    root = feed(BACK, CHANGE)
    entries = root.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}title") for entry in entries] == ["Sample.place is back", "Sample.place is down"]
    assert [entry.findtext(f"{ATOM}updated") for entry in entries] == [BACK["at"], CHANGE["at"]]
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert ids[1] == "tag:data.example,2027-01-15:/status/Sample.place/down/07:00:00Z"
    assert ids[1] == feed(CHANGE).find(f"{ATOM}entry").findtext(f"{ATOM}id")
    assert len(set(ids)) == 2
    assert "timeout" in entries[1].findtext(f"{ATOM}summary")
    assert root.findtext(f"{ATOM}updated") == BACK["at"]


def test_a_feed_without_changes_has_what_atom_requires_and_no_entry():
    root = feed()
    assert root.findtext(f"{ATOM}updated") == "2027-01-15T06:00:00Z"
    assert root.findtext(f"{ATOM}id") == "https://data.example/status.atom"
    assert root.findtext(f"{ATOM}author/{ATOM}name")
    assert {link.get("rel") for link in root.findall(f"{ATOM}link")} == {"self", "alternate"}
    assert root.findall(f"{ATOM}entry") == []


def test_names_are_escaped():
    entry = feed(CHANGE | {"source": 'A<b>"&'}).find(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == 'A<b>"& is down'
    assert entry.find(f"{ATOM}link").get("href") == "https://data.example/status#A%3Cb%3E%22%26"


def test_a_feed_leads_to_itself_to_the_page_and_from_each_entry_to_its_source():
    root = feed(CHANGE)
    assert {link.get("rel"): link.get("href") for link in root.findall(f"{ATOM}link")} == {
        "self": "https://data.example/status.atom",
        "alternate": "https://data.example/status",
    }
    assert root.find(f"{ATOM}entry/{ATOM}link").get("href") == "https://data.example/status#Sample.place"
    assert root.findtext(f"{ATOM}title") == "toolserver: changes of sources"


def test_an_entry_says_what_happened():
    back, down = (entry.findtext(f"{ATOM}summary") for entry in feed(BACK, CHANGE).findall(f"{ATOM}entry"))
    assert back == "The source answers again."
    assert down.startswith("Three exchanges in a row failed; the last error was: timeout. Tools answer from other")


def test_an_address_without_a_host_is_named_by_the_service():
    body = write_feed(replace(FACTS, base_url=""), status_of(TINY, changes=[CHANGE])).body
    assert b"<id>tag:toolserver,2027-01-15:/status/Sample.place/down/07:00:00Z</id>" in body
