"""Take the arguments of a call that are not the tool's own: a bearer token, a call of another tool, and what hosts add.

Hosts that cannot send an Authorization header give a token as an argument. The answer to a
refused caller names the tool to call next. A host that was shown few tools runs the other free
ones by an argument of a tool that it was shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolserver.core.caller import Caller, bearer, is_visitor_token, real_token
from toolserver.core.similar_names import find_similar
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Operation, Tier

NAME = "token"
SCHEMA = {"type": "string", "description": "Bearer token"}

TAKES_TOKEN = "takes_token"
"""The tag of a tool that can be called with a token and without one."""
_BUY = "Buy credits: call payment_buy_credits, pay as it says, then call payment_confirm."
NEXT: dict[str, tuple[str, str]] = {  # code of a refusal → the tool to call next, and how
    "missing_token": ("payment_buy_credits", f"{_BUY} Its token goes into the argument `token`, or into the header."),
    "insufficient_credits": ("payment_buy_credits", f"{_BUY} Then repeat this call with the token that it gives."),
    "expired": ("payment_buy_credits", f"{_BUY} Then repeat this call with the token that it gives."),
    "payment_pending": ("payment_confirm", "Call it again in some seconds, with the same arguments."),
}


def write_arguments(operation: Operation, *, token_argument: bool) -> dict[str, Any]:
    """Return the input schema for MCP: with `call` where a tool runs others, and with an optional `token` if asked to.

    `token_argument` is for connections without a token header. Tools that need and take no token have none.
    """
    schema = operation.input_schema
    added = {CALL: CALL_SCHEMA} if operation.runs_tools else {}
    takes_token = operation.needs_token or TAKES_TOKEN in operation.tags
    if token_argument and takes_token and NAME not in operation.arguments.model_fields:
        added[NAME] = SCHEMA
    return {**schema, "properties": {**schema.get("properties", {}), **added}} if added else schema


def take_token(operation: Operation, sent: dict[str, Any], caller: Caller) -> tuple[dict[str, Any], Caller]:
    """Return the arguments without the token, and the caller with it. Free tools take one too, for their limits.

    Beside a visitor token of the connection, which cannot pay, the argument is taken.

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
    if caller.token is not None and not is_visitor_token(caller.token):
        raise _refuse("is already sent with the connection; leave this argument out")
    return rest, replace(caller, token=entered)


def next_step(code: str) -> dict[str, Any]:
    """Return the member that names the next tool after a refusal; empty if no tool helps."""
    if code not in NEXT:
        return {}
    name, how = NEXT[code]
    return {"next": {"tool": name, "how": how}}


def _refuse(message: str, place: str = NAME, near: Sequence[str] = ()) -> InvalidArguments:
    refusal = InvalidArguments(f"{place}: {message}", errors=[{"loc": place, "msg": message, "type": "value_error"}])
    if near:
        refusal.extra["did_you_mean"] = list(near)
    return refusal


CALL = "call"
CALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Run this free tool instead of searching",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name"],
}
CALL_RESULT: dict[str, Any] = {"called": {"type": "string"}, "result": {"type": "object"}}
"""The members of the answer to `call`, in place of the tool's own."""


def read_inner_call(sent: Mapping[str, Any], reachable: Mapping[str, Operation]) -> tuple[Operation, dict[str, Any]]:
    """Return the free tool that the argument `call` names, and its arguments.

    `reachable` are the tools of this connection by name and alias. A tool that costs credits
    is refused: hosts ask before a call by the name of the tool, whose definition states the
    price.

    Raises:
        InvalidArguments: `call` is malformed, or its tool is unknown or not free.
    """
    call = sent[CALL]
    name = call.get("name") if isinstance(call, dict) else None
    arguments = call.get("arguments") if isinstance(call, dict) else None
    if not isinstance(name, str) or not isinstance(arguments, dict | None) or set(call) - {"name", "arguments"}:
        raise _refuse('must be {"name": "<tool>", "arguments": {…}}', CALL)
    operation = reachable.get(name.strip())
    if operation is None:
        near = find_similar(name[:64], list(reachable))
        meant = f"; did you mean {' or '.join(near)}?" if near else "; search for it with `q`"
        raise _refuse(f"there is no tool of that name{meant}", f"{CALL}.name", near)
    if operation.tier is not Tier.FREE or operation.runs_tools:
        why = f"costs {operation.credits} credits" if operation.credits else "is no free tool"
        why = "does not run itself" if operation.runs_tools else why
        listed = "call it by its own name (where it is not listed, the address with ?toolset=all lists it)"
        raise _refuse(f"{operation.name} {why}: {listed}", f"{CALL}.name")
    return operation, arguments or {}


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
