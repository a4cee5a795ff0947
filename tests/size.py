"""How large the tests of this run are: small in the fast set, as large as they go with REQUIRE=all."""

import os
from typing import TypeVar

T = TypeVar("T")
EVERYTHING = os.environ.get("REQUIRE") == "all"


def sized(full: T, *, fast: T) -> T:
    """The size of a test for this run."""
    return full if EVERYTHING else fast
