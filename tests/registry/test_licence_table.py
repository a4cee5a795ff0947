"""The table of what licence policies leave, for a terminal and as Markdown."""

from toolserver.registry.licence_table import POLICIES, WHAT, write_markdown_table, write_plain_table

TABLE = {
    "any": {"premium_a": [], "premium_b": []},
    "no_forbidden": {"premium_a": ["x.y"], "premium_b": []},
    "commercial": {"premium_a": ["x.y", "z"], "premium_b": []},
}


def test_a_terminal_gets_every_policy_with_its_meaning_and_every_tool():
    text = write_plain_table(TABLE)
    for policy in POLICIES:
        assert f"sources.licence_policy={policy}: {WHAT[policy]}" in text
    assert "premium_a                    x.y, z" in text
    assert text.count("nothing lost") == 4


def test_markdown_has_a_row_for_each_tool():
    assert write_markdown_table(TABLE).split("\n") == [
        "| Tool | lost with `no_forbidden` | lost with `commercial` |",
        "|---|---|---|",
        "| `premium_a` | x.y | x.y, z |",
        "| `premium_b` | nothing lost | nothing lost |",
    ]
