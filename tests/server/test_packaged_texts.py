"""The texts that come with the package are found."""

from toolserver.server.packaged_texts import read_changelog, read_examples, read_licence_table


def test_the_changelog_is_that_of_the_project():
    assert read_changelog().startswith("# Changelog\n")
    assert "## [Unreleased]" in read_changelog()


def test_the_examples_are_answers_by_the_name_of_their_tool():
    examples = read_examples()

    assert list(examples) == sorted(examples)
    assert examples["earthquakes"]["endpoint"] == "earthquake"


def test_the_licence_table_has_every_policy():
    assert list(read_licence_table()) == ["any", "no_forbidden", "commercial"]
