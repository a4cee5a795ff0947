"""Find what each licence policy leaves for sale, by composing every premium answer under each policy."""

import json
import tempfile
from pathlib import Path
from typing import Any

from toolserver.cli.example_answers import compose_example
from toolserver.registry.licence_table import POLICIES
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.settings import Settings
from toolserver.world.providers import load_providers

BARRED = ("licence_excluded", "insufficient_sample")  # warnings of a section that the policy withholds
WHOLE = "the whole answer"


async def compose_licence_table(registry: Registry, settings: Settings) -> dict[str, dict[str, list[str]]]:
    """Compose every premium answer on the simulated world under every policy. Returns the sections lost, by policy."""
    load_providers(settings.tools)
    sold = [operation for operation in registry if operation.tier is Tier.PREMIUM]
    with tempfile.TemporaryDirectory() as folder:
        return {
            policy: {one.name: await _find_lost(one, settings, Path(folder), policy) for one in sold}
            for policy in POLICIES
        }


async def _find_lost(operation: Operation, settings: Settings, folder: Path, policy: str) -> list[str]:
    if policy == "any":
        return []
    answer = await compose_example(operation, settings, folder, arguments=_longest(operation), licence_policy=policy)
    payload = json.loads(answer.payload)
    if answer.nothing:
        return [WHOLE]
    warned = [warning["section"] for warning in payload.get("warning", ()) if warning["code"] in BARRED]
    return [section for section in dict.fromkeys(warned) if _is_gone(payload, section)]


def _longest(operation: Operation) -> dict[str, Any]:
    """Return the arguments that add a series, if the tool has any."""
    history = operation.input_schema["properties"].get("history", {}).get("enum")
    return {"history": history[0]} if history else {}


def _is_gone(payload: Any, section: str) -> bool:
    """Return True if the section at this path of a payload is null or absent."""
    for name in section.split("."):
        if not isinstance(payload, dict) or name not in payload:
            return True
        payload = payload[name]
    return payload is None or payload == []
