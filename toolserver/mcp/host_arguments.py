"""Remove arguments that MCP hosts add on their own before a call is validated."""

from collections.abc import Callable
from typing import Any

from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation

# The hosts that add each name. Names are counted; values are neither stored nor logged.
ADDED_BY = {
    "toolCallId": "n8n",
    "sessionId": "n8n",
    "action": "n8n",
    "chatInput": "n8n",
    "tool": "n8n",
    "task_progress": "Cline",
    "security_context": "CrewAI",
    "_placeholder": "opencode, Vercel",
    "random_string": "Cursor",
    "wait_for_previous": "Gemini CLI",
    "waitForPreviousTools": "Windsurf, Antigravity",
}
LOST = "__unparsedToolInput"


def drop_host_arguments(operation: Operation, given: dict[str, Any], count: Callable[[str], None]) -> dict[str, Any]:
    """Return the arguments without those added by hosts and without optional ones that are null or empty.

    `count` receives the name of each host argument that was dropped.

    Raises:
        InvalidArguments: the host says that it lost the arguments in transit.
    """
    if not given:
        return given
    fields = operation.arguments.model_fields
    if LOST in given:
        raise InvalidArguments("The arguments were lost in transit: send them again as a JSON object.", errors=[])
    kept = {}
    for name, value in given.items():
        if name in ADDED_BY and name not in fields:
            count(name)
        elif not (_is_nothing(value) and name in fields and not fields[name].is_required()):
            kept[name] = value
    return kept


def _is_nothing(value: Any) -> bool:
    return value is None or value == ""
