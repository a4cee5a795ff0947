"""Arguments that hosts add by themselves: dropped and counted, unless the tool has one of that name."""

import pytest

from toolserver.errors import InvalidArguments
from toolserver.mcp.call_arguments import ADDED_BY, LOST, drop_host_arguments
from toolserver.registry.registry import Registry

TOOLS = Registry.load("tools")
STOCKS, CONFIRM = TOOLS["stocks"], TOOLS["payment_confirm"]


@pytest.mark.parametrize("name", ADDED_BY)
def test_a_hosts_own_argument_is_dropped_and_counted_by_name(name):
    counted: list[str] = []

    assert drop_host_arguments(STOCKS, {"symbols": "AAPL", name: "anything"}, counted.append) == {"symbols": "AAPL"}
    assert counted == [name]


@pytest.mark.parametrize("nothing", [None, ""])
def test_null_and_an_empty_text_are_absent_where_an_argument_is_optional(nothing):
    assert drop_host_arguments(STOCKS, {"symbols": nothing}, list[str]().append) == {}
    assert drop_host_arguments(CONFIRM, {"tx_hash": nothing}, list[str]().append) == {"tx_hash": nothing}


def test_other_unknown_arguments_are_left_for_the_refusal():
    assert drop_host_arguments(STOCKS, {"symbol": "AAPL"}, list[str]().append) == {"symbol": "AAPL"}


def test_arguments_that_a_host_lost_are_asked_for_again():
    with pytest.raises(InvalidArguments, match="send them again as a JSON object"):
        drop_host_arguments(STOCKS, {LOST: "{"}, list[str]().append)
