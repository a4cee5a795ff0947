"""A field that is absent or of another type is named, with what the parser does about it: told by trying it."""

import json
from typing import NamedTuple

import pytest

from tests.calls.parts import FREELY
from toolserver.upstream.decode import read_rows
from toolserver.upstream.drift import (
    LONGEST_ROW,
    MAP_FROM,
    MOST_DIFFERENCES,
    Drift,
    Question,
    Shape,
    compare_shapes,
    find_drift,
    write_path,
)
from toolserver.upstream.source import Get, Licence, Source

REQUEST = Get("https://test.example/rows")


class Row(NamedTuple):
    id: int
    price: float
    note: str | None


def parse(body, query):
    return read_rows(body["rows"], lambda row: Row(int(row["id"]), float(row["price"]), row.get("note")))


SOURCE = Source(
    "Test.rows", REQUEST, parse, fresh_s=30, keep_s=60, timeout_s=2, hosts=FREELY, licence=Licence("yes", "T")
)
SIMULATED = {"rows": [{"id": n, "price": n / 2, "note": "a", "unread": 1} for n in range(1, 5)], "total": 4}


def real(change):
    """A real body: the simulated one after a change of each row."""
    body = json.loads(json.dumps(SIMULATED))
    for row in body["rows"]:
        change(row)
    return body


def drift(body, *, is_read=True, simulated=SIMULATED, source=SOURCE):
    given = [json.dumps(simulated).encode()]
    return find_drift(Question(source, REQUEST, None), json.dumps(body).encode(), given, is_read=is_read)


def test_a_body_of_the_same_shape_has_no_drift():
    assert drift(SIMULATED) == []


def test_a_field_without_which_the_parser_fails_is_named():
    removed = real(lambda row: row.pop("price"))
    assert drift(removed, is_read=False) == [Drift("rows[].price", "absent", "parse fails", True)]


def test_a_field_of_another_name_is_an_absent_one():
    def rename(row):
        row["last_price"] = row.pop("price")

    assert drift(real(rename), is_read=False)[0] == Drift("rows[].price", "absent", "parse fails", True)


def test_another_type_that_the_parser_cannot_read_is_named():
    body = real(lambda row: row.update(price={"usd": 1}))
    assert drift(body, is_read=False) == [
        Drift("rows[].price", "object instead of number", "parse fails", True),
    ]


def test_another_type_that_the_parser_reads_is_good_to_know():
    body = real(lambda row: row.update(price=str(row["price"])))
    assert drift(body) == [Drift("rows[].price", "string instead of number", "read all the same", False)]


def test_an_optional_field_that_never_comes_is_drift():
    assert drift(real(lambda row: row.pop("note"))) == [Drift("rows[].note", "absent", "answers change", True)]


def test_an_optional_field_that_comes_at_times_is_none():
    body = real(lambda row: None)
    del body["rows"][0]["note"]
    assert drift(body) == [Drift("rows[].note", "absent in 1 of 4", "answers change", False)]


def test_a_row_that_is_lost_is_told_with_how_many():
    body = real(lambda row: None)
    body["rows"][1]["price"] = None
    assert drift(body, is_read=False) == [
        Drift("rows[].price", "null in 1 of 4 instead of number", "rows are lost", True)
    ]


def test_fields_that_the_parser_does_not_read_are_no_drift():
    body = real(lambda row: row.pop("unread")) | {"total": "4"}
    assert [(each.path, each.effect, each.is_schema) for each in drift(body)] == [
        ("rows[].unread", "not read", False),
        ("total", "not read", False),
    ]


def test_where_the_parser_reads_another_form_its_fields_are_not_missed():
    """The body was read as a whole, so what the simulated one needs is not what this one lacks."""
    either = Source(
        "Test.either",
        REQUEST,
        lambda body, query: parse({"rows": body.get("list") or body["rows"]}, query),
        fresh_s=30,
        keep_s=60,
        timeout_s=2,
        hosts=FREELY,
        licence=Licence("yes", "T"),
    )
    body = {"list": SIMULATED["rows"], "total": 4}
    assert drift(body, source=either) == [Drift("rows", "absent", "parse fails", False)]


def test_another_whole_is_told():
    assert drift([1], is_read=False) == [Drift("the whole body", "array instead of object", "parse fails", True)]


def test_what_cannot_be_tried_is_not_known():
    broken = {"rows": [{"id": "x"}], "total": 1}
    assert drift({"rows": [{"id": 1}], "total": "1"}, simulated=broken)[0].effect == "not known"


@pytest.mark.parametrize("body", [b"<html><p>sorry</p></html>", b"", b"<a><b>1</b></a>"])
def test_a_body_of_another_form_is_not_compared(body):
    assert find_drift(Question(SOURCE, REQUEST, None), body, [json.dumps(SIMULATED).encode()], is_read=False) is None


def test_without_a_simulated_body_nothing_is_compared():
    assert find_drift(Question(SOURCE, REQUEST, None), b"{}", [], is_read=False) is None


TABLE = Source(
    "Test.table",
    Get("https://test.example/t.csv", decode="text"),
    lambda text, query: tuple(
        line.split(",")[text.split("\n")[0].split(",").index("price")] for line in text.split("\n")[1:-1]
    ),
    fresh_s=30,
    keep_s=60,
    timeout_s=2,
    hosts=FREELY,
    licence=Licence("yes", "T"),
)


def test_a_column_that_is_absent_is_named():
    asked = Question(TABLE, TABLE.request, None)
    found = find_drift(asked, b"date,close\n2027-01-15,1\n", [b"date,price\n2027-01-14,2\n"], is_read=False)
    assert found == [Drift("[].price", "absent", "parse fails", True)]


def test_what_the_parser_needs_comes_first_and_what_it_does_not_read_last():
    def change(row):
        for name in ("price", "note", "unread"):
            del row[name]

    assert drift(real(change), is_read=False) == [
        Drift("rows[].price", "absent", "parse fails", True),
        Drift("rows[].note", "absent", "answers change", True),
        Drift("rows[].unread", "absent", "not read", False),
    ]


def test_of_very_many_differences_two_hundred_are_tried():
    wide = SIMULATED | {f"field {number:03}": 1 for number in range(MOST_DIFFERENCES + 1)}
    assert len(drift(SIMULATED, simulated=wide)) == MOST_DIFFERENCES == 200


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
