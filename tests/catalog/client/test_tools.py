"""The client under its old name."""

import importlib
import sys

import pytest

import toolserver.client


def test_the_old_name_still_works_and_says_what_replaces_it() -> None:
    for name in ("catalog.client.tools", "catalog.client"):
        sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match="import from toolserver.client"):
        old = importlib.import_module("catalog.client")
    old_types = importlib.import_module("catalog.client.tools")

    assert {name: getattr(old, name) for name in old.__all__} == {
        name: getattr(toolserver.client, name) for name in toolserver.client.__all__
    }
    assert old_types.WeatherPayload == toolserver.client.tools.WeatherPayload
    with pytest.raises(AttributeError):
        old_types.Weather  # noqa: B018
