"""Tools as methods, and the types that are written for them."""

from typing import Any

import pytest

from tests.served import all_tools
from toolserver.client import AsyncToolClient, ToolClient, tools


class Recorded(tools.Tools):
    def call(self, name, arguments):
        return name, arguments


def test_any_name_is_a_call_of_the_tool_of_that_name():
    assert Recorded().weather(place="Paris") == ("weather", {"place": "Paris"})
    assert Recorded().account_statement(from_="2027-01-01") == ("account_statement", {"from": "2027-01-01"})
    with pytest.raises(AttributeError):
        getattr(Recorded(), "_weather")  # noqa: B009


def test_no_tool_is_called_like_something_else_of_the_clients():
    names = {operation.name for operation in all_tools()}
    assert names.isdisjoint(dir(ToolClient))
    assert names.isdisjoint(dir(AsyncToolClient))


def test_types_of_payloads_are_dicts_when_a_program_runs():
    from toolserver.client.tools import WeatherPayload

    assert WeatherPayload == dict[str, Any]
    with pytest.raises(AttributeError):
        getattr(tools, "Weather")  # noqa: B009
