"""What a program has loaded so far, as Python itself lists it: a count that no other program of the machine changes."""

from pathlib import Path

LISTING_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1"}
"""What to add to the environment of the program. Its stderr then has a line for each module."""

OF_SALES = (
    *("toolserver.money.chain.scanner", "toolserver.money.x402.exact", "toolserver.money.x402.settlement"),
    *("web3", "eth_keys", "eth_account", "eth_utils", "eth_abi", "cryptography", "aiohttp"),
)
"""What credits and webhooks are sold with: a server that sells nothing loads none of it."""

HEAVY = (
    *("mcp", "fastmcp", "fastapi", "starlette", "jinja2", "markdown_it", "rapidfuzz", "asyncpg", "redis", "yaml"),
    *OF_SALES,
)


def imported(log: Path) -> set[str]:
    """The modules that a program has loaded, by its stderr."""
    lines = (line for line in log.read_text().splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}
