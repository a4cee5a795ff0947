"""The clock by which a command dates what it writes."""

import click
import pytest

from tests.ports import reserve_port
from toolserver.cli.command_clock import find_clock
from toolserver.clock import SystemClock
from toolserver.settings import Settings, UpstreamSettings


def follow(url: str | None) -> Settings:
    return Settings(upstream=UpstreamSettings(via=url))


def test_without_a_world_a_command_has_the_clock_of_the_machine():
    assert isinstance(find_clock(follow(None)), SystemClock)


def test_a_command_does_nothing_by_another_clock_while_its_world_is_away():
    with pytest.raises(click.ClickException, match="start the demo first"):
        find_clock(follow(f"http://127.0.0.1:{reserve_port()}"))
