"""Give a command the clock of the service that it works for: the machine's, or that of a simulated world."""

import click

from toolserver.clock import Clock, SystemClock
from toolserver.settings import Settings
from toolserver.world.remote_clock import FollowedClock, WorldAway, read_world_time


def find_clock(settings: Settings) -> Clock:
    """Return the clock of the simulated world at `upstream.via`, else the machine's.

    If nothing answers there, the program ends with a message: money must not be dated by another clock.
    """
    via = settings.upstream.via
    if via is None:
        return SystemClock()
    try:
        now = read_world_time(via)
    except WorldAway as away:
        raise click.ClickException(f"{away}: its clock dates everything here, so start the demo first") from None
    if now is None:
        return SystemClock()
    clock = FollowedClock()
    clock.set(now)
    return clock
