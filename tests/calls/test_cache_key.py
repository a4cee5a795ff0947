"""The key of a cached answer holds the operation and every argument."""

from tests.calls.toy import REGISTRY, Reading
from toolserver.calls.arguments import build_cache_key, is_default
from toolserver.context.context import ToolContext
from toolserver.registry.registry import Tier, operation_of, tool

NUMBER, BROKEN = REGISTRY["number"], REGISTRY["broken"]


def test_a_key_holds_the_operation_and_every_argument():
    assert build_cache_key(NUMBER, NUMBER.arguments(add=2)) == ("number", 2)
    assert build_cache_key(NUMBER, NUMBER.arguments()) == build_cache_key(NUMBER, NUMBER.arguments(add=0))
    assert build_cache_key(BROKEN, BROKEN.arguments()) == "broken"


def test_arguments_are_the_default_ones_also_where_they_are_given():
    given = (NUMBER.arguments(), NUMBER.arguments(add=0), NUMBER.arguments(add=2), BROKEN.arguments())
    assert [is_default(o, a) for o, a in zip((NUMBER, NUMBER, NUMBER, BROKEN), given, strict=True)] == [
        True,
        True,
        False,
        True,
    ]


@tool(path="/api/many", title="Many", ttl_s=30)
async def many(ctx: ToolContext, symbols: list[str] | None = None, limit: int = 5) -> Reading:
    """Takes a list, which is a part of the key of its answer all the same; for tests only."""
    return Reading(value=1, twice=2)


def test_a_list_is_a_part_of_the_key_in_its_order():
    operation = operation_of(many)
    keys = [build_cache_key(operation, operation.arguments(symbols=each)) for each in (["a", "b"], ["b", "a"], None)]

    assert keys == [("many", ("a", "b"), 5), ("many", ("b", "a"), 5), ("many", None, 5)]
    assert len(set(keys)) == 3


@tool(path="/api/payment/changing", title="Changing", tier=Tier.PAYMENT, method="POST")
async def changing(ctx: ToolContext, add: int = 0) -> Reading:
    """Changes what is stored, so that its answer is never kept; for tests only."""
    return Reading(value=1, twice=2)


def test_what_changes_data_has_no_key_for_each_argument():
    operation = operation_of(changing)
    assert build_cache_key(operation, operation.arguments(add=2)) == "changing"
