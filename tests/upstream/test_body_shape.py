"""In what the shape of one body differs from that of another."""

import pytest

from toolserver.upstream.body_shape import LONGEST_ROW, MAP_FROM, Shape, compare_shapes, write_path


def shape(*values):
    made = Shape()
    for value in values:
        made.add(value, "json")
    return made


def differences(expected, found):
    """The path, the type or `absent`, and how many of how many, of each difference."""
    return [
        (write_path(each.path), each.kind or "absent", each.places, each.total)
        for each in compare_shapes(shape(*expected), shape(found))
    ]


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        ({"a": 1}, {"a": 2, "new": 3}, []),
        ({"a": 1}, {"b": 1}, [("a", "absent", 1, 1)]),
        ({"a": 1}, {"a": "1"}, [("a", "string", 1, 1)]),
        ({"a": 1}, [1], [("the whole body", "array", 1, 1)]),
        ({"a": {"b": 1}}, {"a": {}}, [("a.b", "absent", 1, 1)]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}, {}, {"b": None}]}, [("a[].b", "absent", 1, 3), ("a[].b", "null", 1, 2)]),
        ({"a": [{"b": 1}]}, {"a": []}, []),
        ({"rows": [[1, "2"]]}, {"rows": [[1, 2], [3, 4]]}, [("rows[][1]", "number", 2, 2)]),
        ({"rows": [[1, "2"]]}, {"rows": [[1], [3]]}, [("rows[][1]", "absent", 2, 2)]),
    ],
)
def test_absent_fields_and_other_types_are_told(expected, found, told):
    assert differences([expected], found) == told


def test_a_field_that_is_not_always_expected_may_be_absent():
    assert differences([{"rows": [{"a": 1, "b": 1}, {"a": 1}]}], {"rows": [{"a": 1}]}) == []


def test_several_bodies_together_say_what_is_expected():
    assert differences([{"a": 1, "b": 1}, {"a": None}], {"a": None}) == []


def test_names_that_are_data_are_no_fields():
    pairs = {f"P{n}": {"c": "1", "v": "2"} for n in range(6)}
    found = {f"Q{n}": {"c": "1"} for n in range(9)}
    assert differences([{"result": pairs}], {"result": found}) == [("result.*.v", "absent", 9, 9)]
    assert differences([{"result": {"P1": {"c": "1"}}}], {"result": found}) == []
    assert differences([{"rates": {"2027-01-15": 1}}], {"rates": {"2026-01-15": "1"}}) == [("rates.*", "string", 1, 1)]


def test_a_long_list_within_a_list_is_no_row():
    long = [list(range(30))]
    assert differences([long], [["x", *range(29)]]) == [("[][]", "string", 1, 30)]
    assert differences([long], [[1, 2]]) == []


def test_a_list_within_a_list_is_a_row_up_to_24_items():
    assert LONGEST_ROW == 24
    assert differences([[[0] * 24]], [["x", *[0] * 23]]) == [("[][0]", "string", 1, 1)]
    assert differences([[[0] * 25]], [["x", *[0] * 24]]) == [("[][]", "string", 1, 25)]


def test_names_of_five_similar_objects_are_data_and_those_of_four_are_fields():
    assert MAP_FROM == 5
    five, four = ({f"P{n}": {"c": 1, "v": 2} for n in range(count)} for count in (5, 4))
    assert differences([five], {"Q": {"c": 1}}) == [("*.v", "absent", 1, 1)]
    assert differences([four], {"Q": {"c": 1}}) == [(f"P{n}", "absent", 1, 1) for n in range(4)]


@pytest.mark.parametrize(("last", "is_map"), [({"a": 1, "b": 1, "c": 1}, True), ({"a": 1, "c": 1}, False)])
def test_objects_are_similar_that_share_more_than_half_of_their_fields(last, is_map):
    expected = {f"P{n}": {"a": 1, "b": 1} for n in range(4)} | {"P4": last}
    assert differences([expected], {}) == ([] if is_map else [(f"P{n}", "absent", 1, 1) for n in range(5)])
