"""The skills in the package: their form, and that what they name exists."""

import re

import yaml

from tests.served import all_tools
from toolserver.mcp.skills import BUY_CREDITS, VERIFY_A_RECEIPT, WATCH_SOMETHING, read_skills
from toolserver.webhooks.events import EventCatalog

NAMES = (BUY_CREDITS, VERIFY_A_RECEIPT, WATCH_SOMETHING)
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
TOOL = re.compile(r"`((?:payment|receipt|webhook|allowance|premium)_\w+)`")
EVENT = re.compile(r"`([a-z_]+\.[a-z]+)`")


def test_a_skill_has_its_name_a_description_and_one_file():
    skills = read_skills(NAMES)
    assert [skill.name for skill in skills.values()] == list(NAMES)
    for uri, skill in skills.items():
        assert skill.text.startswith("---\n")
        assert yaml.safe_load(skill.text.split("---\n")[1]) == skill.frontmatter
        assert NAME.fullmatch(skill.frontmatter["name"])
        assert uri.split("/")[-2] == skill.frontmatter["name"] == skill.name
        assert 20 < len(skill.frontmatter["description"]) <= 1024
        assert len(skill.text) < 4_000


def test_the_tools_and_events_that_skills_name_exist():
    tools, events = all_tools(), {event["name"] for event in EventCatalog(all_tools()).describe()}
    for skill in read_skills(NAMES).values():
        named = set(TOOL.findall(skill.text)) - {"payment_pending", "webhook_url"}
        assert named
        assert not [name for name in named if tools.get(name) is None]
    assert set(EVENT.findall(read_skills([WATCH_SOMETHING])["skill://watch-something/SKILL.md"].text)) <= events
