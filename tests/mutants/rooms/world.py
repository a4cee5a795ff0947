"""Faults of the simulated world itself: those of its rules, its clock and its control interface."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/world/control.py",
        "callers on other machines control the world",
        "return local and named and",
        "return named and",
    ),
    fault(
        "toolserver/world/control.py",
        "a page of another origin controls the world",
        "(origin is None or urlsplit(origin).netloc == host.netloc)",
        "(origin is None or origin)",
    ),
    fault(
        "toolserver/world/faults.py",
        "a rule goes on after its time",
        "world.now >= self.world.now + occasion.for_s",
        "world.now < self.world.now",
    ),
    fault(
        "toolserver/world/faults.py",
        "requests that a rate limit refused count towards it",
        "        if len(recent) < limit:\n            recent.append(now)\n",
        "        recent.append(now)\n        if len(recent) <= limit:\n",
    ),
    fault(
        "toolserver/world/answers.py",
        "a page of another second is returned",
        "key = (handler, world.seed, world.now, id(world.edits), request)",
        "key = (handler, world.seed, id(world.edits), request)",
        "tests/world",
    ),
    fault(
        "toolserver/world/remote_clock.py",
        "measured time goes back with the world's",
        "self._leapt += max(difference, 0.0)",
        "self._leapt += difference",
    ),
    fault(
        "toolserver/world/answers.py",
        "a jump of numbers moves times too",
        "name.lower() in KEPT or is_time(value, now) else value * factor",
        "name.lower() in KEPT else value * factor",
    ),
)
