"""Tell a person in the terminal that a service is ready."""

from collections.abc import Callable
from typing import Any

_GREETING = {
    "base_url": "home page",
    "mcp_url": "MCP",
    "operators_url": "for operators",
    "metrics_url": "metrics",
    "internal_url": "ledger API",
    "world_url": "simulated world",
    "chain_url": "simulated chain",
    "token": "bearer token",
    "credits": "its credits",
}


def greet(facts: dict[str, Any], hint: Callable[[str], str] | None = None) -> None:
    """Print that the service accepts calls, its addresses, and what to try (written by `hint`)."""
    lines = [f"  {label:17}{facts[name]}" for name, label in _GREETING.items() if facts.get(name) is not None]
    print(
        "\nready; Ctrl+C stops\n\n" + "\n".join(lines) + "\n" + (f"\n{hint(facts['base_url'])}" if hint else ""),
        flush=True,
    )
