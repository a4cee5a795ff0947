"""A refused question (400) leaves the client's place free, so that the corrected one is answered at once."""

from typing import Annotated

import pytest
from pydantic import Field

from tests.calls.parts import engine
from tests.calls.toy import FIRST, ONE, Reading
from tests.requirements import proves
from toolserver.context.context import ToolContext
from toolserver.errors import InvalidArguments, RateLimited
from toolserver.registry.registry import Operation, Registry, operation_of, tool

ADDRESSES = ["192.0.2.1", "2001:db8:1:2::/64"]


def register(distinct: tuple[tuple[str, ...], int, float] | None = None) -> Registry:
    @tool(path="/api/odd", title="Odd", ttl_s=30, sources=(ONE,), distinct=distinct)
    async def odd(
        ctx: ToolContext, number: Annotated[int, Field(description="An odd number", examples=[3])] = 1
    ) -> Reading:
        """An odd number; an even one is refused at once, and one over 100 after the source was asked.

        Source: nobody.
        """
        if number % 2 == 0:
            raise InvalidArguments("number: it is even", errors=[])
        value = (await ctx.read(ONE, number)).value
        if number > 100:
            raise InvalidArguments("number: it is too large", errors=[])
        return Reading(value=value, twice=2 * value)

    operation: Operation = operation_of(odd)
    return Registry([operation])


async def ask(e, number: int, client: str) -> str:
    """Ask for a number. Return "answered" or the code of the refusal."""
    try:
        await e.call("odd", {"number": number}, client=client, limited=True)
    except (InvalidArguments, RateLimited) as refused:
        return refused.code
    return "answered"


@proves("limits.refused")
@pytest.mark.parametrize("client", ADDRESSES)
async def test_a_question_that_is_refused_before_an_upstream_is_asked_takes_no_place(client):
    async with engine(register(), limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        codes = [await ask(e, number, client) for number in (2, 4, 6, 3, 5, 8)]
    assert codes == [*["invalid_arguments"] * 3, "answered", "rate_limited", "rate_limited"]


@proves("limits.refused")
async def test_an_answered_question_keeps_its_place_when_a_refused_one_follows():
    async with engine(register(), limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        assert await ask(e, 3, ADDRESSES[0]) == "answered"
        assert await ask(e, 2, ADDRESSES[0]) == "rate_limited"
        assert await ask(e, 5, ADDRESSES[0]) == "rate_limited"


@proves("limits.refused-asked")
async def test_a_question_that_is_refused_after_an_upstream_was_asked_takes_a_place():
    async with engine(register(), limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        codes = [await ask(e, number, ADDRESSES[0]) for number in (101, 3)]
    assert (codes, len(e.internet.asked)) == (["invalid_arguments", "rate_limited"], 1)


@proves("limits.distinct")
@pytest.mark.parametrize("client", ADDRESSES)
async def test_where_different_values_are_limited_they_alone_limit_refused_questions(client):
    async with engine(register(distinct=(("number",), 3, 3600)), limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        codes = [await ask(e, number, client) for number in (101, 103, 105, 107, 1)]
    assert codes == [*["invalid_arguments"] * 3, "rate_limited", "answered"]
    assert len(e.internet.asked) == 4
