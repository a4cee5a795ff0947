"""Take the arguments of a call that are not the tool's own: a bearer token, and what MCP hosts add.

Hosts that cannot send an Authorization header give a token as an argument. The answer to a
refused caller names the tool to call next.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolserver.core.caller import Caller, bearer, real_token
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation

NAME = "token"
SCHEMA = {"type": "string", "description": "Bearer token"}

_BUY = "Buy credits: call payment_buy_credits, pay as it says, then call payment_confirm."
NEXT: dict[str, tuple[str, str]] = {  # code of a refusal → the tool to call next, and how
    "missing_token": ("payment_buy_credits", f"{_BUY} Its token goes into the argument `token`, or into the header."),
    "insufficient_credits": ("payment_buy_credits", f"{_BUY} Then repeat this call with the token that it gives."),
    "expired": ("payment_buy_credits", f"{_BUY} Then repeat this call with the token that it gives."),
    "payment_pending": ("payment_confirm", "Call it again in some seconds, with the same arguments."),
}


def add_token_argument(operation: Operation) -> dict[str, Any]:
    """Return the input schema for connections without a token header: with an optional `token` if one is needed."""
    schema = operation.input_schema
    if not operation.needs_token or NAME in operation.arguments.model_fields:
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), NAME: SCHEMA}}


def take_token(operation: Operation, sent: dict[str, Any], caller: Caller) -> tuple[dict[str, Any], Caller]:
    """Return the arguments without the token, and the caller with it. Free tools take one too, for their limits.

    Raises:
        InvalidArguments: a header already carries a token, or this is not a string. No value is quoted.
    """
    if NAME not in sent or NAME in operation.arguments.model_fields:
        return sent, caller
    token = sent[NAME]
    rest = {name: value for name, value in sent.items() if name != NAME}
    if not isinstance(token, str | None):
        raise _refuse("must be a string, as returned by payment_confirm")
    entered = None if token is None else real_token(bearer(token.strip()))
    if entered is None:
        return rest, caller
    if caller.token is not None:
        raise _refuse("is already sent with the connection; leave this argument out")
    return rest, replace(caller, token=entered)


def next_step(code: str) -> dict[str, Any]:
    """Return the member that names the next tool after a refusal; empty if no tool helps."""
    if code not in NEXT:
        return {}
    name, how = NEXT[code]
    return {"next": {"tool": name, "how": how}}


def _refuse(message: str) -> InvalidArguments:
    return InvalidArguments(f"{NAME}: {message}", errors=[{"loc": NAME, "msg": message, "type": "value_error"}])


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


def drop_host_arguments(operation: Operation, sent: dict[str, Any], count: Callable[[str], None]) -> dict[str, Any]:
    """Return the arguments without those added by hosts and without optional ones that are null or empty.

    `count` receives the name of each host argument that was dropped.

    Raises:
        InvalidArguments: the host says that it lost the arguments in transit.
    """
    if not sent:
        return sent
    fields = operation.arguments.model_fields
    if LOST in sent:
        raise InvalidArguments("The arguments were lost in transit: send them again as a JSON object.", errors=[])
    arguments = {}
    for name, value in sent.items():
        if name in ADDED_BY and name not in fields:
            count(name)
        elif not (_is_nothing(value) and name in fields and not fields[name].is_required()):
            arguments[name] = value
    return arguments


def _is_nothing(value: Any) -> bool:
    return value is None or value == ""
