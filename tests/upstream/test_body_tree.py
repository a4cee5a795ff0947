"""Bodies as values: JSON, XML and tables are read, written again, and read the same; everything else is no tree."""

import pytest

from toolserver.upstream.drift import kind_of, read_body_tree

XML = b'<?xml version="1.0"?><rss v="2"><item><t>One</t><n>5</n></item><item><t>Two</t></item></rss>'
TABLE = b'# a comment\ndate,price,note\n2027-01-15,12.5,"x, y"\n2027-01-16,13,\n'


def test_json_is_read_also_behind_a_mark_of_bytes():
    tree = read_body_tree(b'\xef\xbb\xbf {"a": [1, null]}')
    assert (tree.kind, tree.value) == ("json", {"a": [1, None]})
    assert tree.write(tree.value) == b'{"a": [1, null]}'


def test_an_element_is_its_attributes_its_children_by_name_and_its_text():
    tree = read_body_tree(XML)
    items = [{"t": [{"#text": "One"}], "n": [{"#text": "5"}]}, {"t": [{"#text": "Two"}]}]
    assert (tree.kind, tree.value) == ("xml", {"rss": {"@v": "2", "item": items}})
    assert read_body_tree(tree.write(tree.value)).value == tree.value


def test_a_table_is_its_rows_by_column():
    tree = read_body_tree(TABLE)
    assert tree.kind == "table"
    assert tree.value[0] == {"date": "2027-01-15", "price": "12.5", "note": "x, y"}
    assert read_body_tree(tree.write(tree.value)).value == tree.value
    assert tree.write([{"date": "d"}]) == b"# a comment\ndate\nd\n"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"958123",
        b"{",
        b"<a>",
        b"<html><p>x</p></html>",
        b"https://a\nhttps://b\n",
        b"1,2\n3,4\n",
        b"\xff\xfe,\xff\n1,2",
    ],
)
def test_everything_else_has_no_fields(body):
    assert read_body_tree(body) is None


@pytest.mark.parametrize(
    ("value", "tree", "kind"),
    [
        (1.5, "json", "number"),
        ("1.5", "json", "string"),
        ("1.5", "table", "number"),
        (" -2e3 ", "xml", "number"),
        ("N/A", "table", "string"),
        (True, "json", "boolean"),
        (None, "json", "null"),
        ({}, "json", "object"),
        ([], "json", "array"),
    ],
)
def test_the_type_of_a_value(value, tree, kind):
    assert kind_of(value, tree) == kind
