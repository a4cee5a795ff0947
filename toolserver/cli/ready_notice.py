"""Say that a service accepts calls: with a JSON line for programs, or a greeting for a person in the terminal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolserver.serving.listen import announce
from toolserver.serving.listeners import Listeners

_LABELS = {
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


@dataclass(frozen=True, slots=True)
class ReadyNotice:
    """What is printed once calls are accepted. `facts` are added to the addresses.

    `hint` writes, from the base URL, what a person can try. `before` is called with the base URL first.
    """

    as_json: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    hint: Callable[[str], str] | None = None
    before: Callable[[str], None] | None = None

    def publish(self, listeners: Listeners) -> None:
        """Print the notice of a service that listens at these addresses."""
        if self.before is not None:
            self.before(listeners.base_url)
        if self.as_json:
            announce(**listeners.addresses, **self.facts)
            return
        facts = {**listeners.for_people, **self.facts}
        lines = [f"  {label:17}{facts[name]}" for name, label in _LABELS.items() if facts.get(name) is not None]
        hint = "" if self.hint is None else f"\n{self.hint(listeners.base_url)}"
        print("\nready; Ctrl+C stops\n\n" + "\n".join(lines) + f"\n{hint}", flush=True)
