"""The texts that come with the package are found."""

from toolserver.serving.packaged_texts import read_changelog, read_examples, read_licence_table, read_texts


def test_the_changelog_is_that_of_the_project():
    assert read_changelog().startswith("# Changelog\n")
    assert "## [Unreleased]" in read_changelog()


def test_the_examples_are_answers_by_the_name_of_their_tool():
    examples = read_examples()

    assert list(examples) == sorted(examples)
    assert examples["earthquakes"]["endpoint"] == "earthquake"


def test_the_licence_table_has_every_policy():
    assert list(read_licence_table().lost) == ["any", "no_forbidden", "commercial"]


def test_the_documents_are_read_by_name():
    found = read_texts()
    assert {"README", "webhooks", "operating"} <= found["guides"].keys()
    assert found["guides"]["webhooks"].startswith("# Webhooks")
    assert found.keys() == {"changes", "examples", "samples", "licences", "guides"}
