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

LATER = (
    *("h2", "hpack", "wsproto", "logging.config", "multiprocessing"),  # of hypercorn
    *("http.server", "urllib.request", "wsgiref.simple_server"),  # of prometheus-client
    *("argparse", "pydantic_settings.sources.providers.cli"),
    *("xml.etree.ElementTree", "xml.sax", "brotli", "zstandard", "yarl"),
    *("toolserver.money.purchases.service", "toolserver.money.purchases.quotes", "toolserver.money.purchases.store"),
    *("toolserver.money.purchases.sql_refunds", "toolserver.money.books.sql_books"),
    *("toolserver.money.ledger.server.api", "toolserver.serving.operator_report"),
)
"""What an idle server that sells nothing has not loaded: the first call that needs it does. It takes 7 MB."""


def imported(log: Path) -> set[str]:
    """The modules that a program has loaded, by its stderr."""
    lines = (line for line in log.read_text().splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}
