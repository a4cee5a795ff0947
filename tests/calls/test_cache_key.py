"""The key of a cached answer holds the operation and every argument."""

from tests.calls.toy import REGISTRY
from toolserver.calls.cache_key import build_cache_key, is_default

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
