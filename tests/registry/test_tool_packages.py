"""Which packages of tools there are."""

from importlib.metadata import EntryPoint

from toolserver.registry import tool_packages


def test_named_packages_come_first_and_announced_ones_once_by_name():
    announced = [EntryPoint(name, f"{name}_tools", tool_packages.GROUP) for name in ("tides", "cheese", "named")]

    def find(group):
        return announced if group == "toolserver.tools" else []

    assert tool_packages.tool_packages(["tools", "named_tools"], find) == (
        "tools",
        "named_tools",
        "cheese_tools",
        "tides_tools",
    )
