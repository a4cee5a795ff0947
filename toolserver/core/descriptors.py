"""Know how many files and connections this process may have open."""

import resource


def read_descriptor_limit() -> int | None:
    """Return how many descriptors this process may have, None without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft
