"""What a policy leaves is found by composing, not by reading a list of licences."""

from toolserver.cli.licence_table import compose_licence_table
from toolserver.registry.registry import Registry
from toolserver.serving.packaged_texts import read_licence_table
from toolserver.settings import Settings


async def test_the_table_that_is_shipped_is_what_the_policies_leave():
    found = await compose_licence_table(Registry.load("tools"), Settings())

    assert found == read_licence_table()
    assert set(found["any"]) == set(found["commercial"])
    assert not any(found["any"].values())
    for tool, lost in found["no_forbidden"].items():
        assert set(lost) <= set(found["commercial"][tool]), tool
    assert "sections.predictions" in found["commercial"]["premium_briefing"]
