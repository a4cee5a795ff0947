"""Serve the control interface under /_sim: JSON, for callers on this machine only."""

import json
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit

from toolserver.world.commands import COMMANDS, ControlRequest, plain
from toolserver.world.faucet import FAUCET
from toolserver.world.model import Reply, Routes
from toolserver.world.request_checks import ControlRefused
from toolserver.world.state import WorldState
from toolserver.world.wire import Received

_ALL = COMMANDS | FAUCET


async def control(state: WorldState, routes: Routes, request: Received) -> Reply:
    """Carry out a control request."""
    if not _from_this_machine(request):
        return Reply.json({"error": "the control interface is for callers on this machine"}, 403)
    name, _, rest = request.path.removeprefix("/_sim").strip("/").partition("/")
    function = _ALL.get((request.method, name))
    if function is None:
        allowed = sorted(m for m, n in _ALL if n == name)
        return _refusal(405, f"{name} takes {', '.join(allowed)}") if allowed else _refusal(404, f"no {name!r} here")
    params = dict(parse_qsl(request.query, keep_blank_values=True))
    try:
        value = await function(ControlRequest(state, routes, unquote(rest), params, request.body))
        return Reply.text(json.dumps(value, ensure_ascii=False, default=plain), content_type="application/json")
    except ControlRefused as error:
        return _refusal(error.status, str(error))
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError) as error:
        return _refusal(400, f"{type(error).__name__}: {error}")


def _refusal(status: int, text: str) -> Reply:
    return Reply.json({"error": text}, status)


def _from_this_machine(request: Received) -> bool:
    """Return True if the peer is on the loopback interface and no foreign web page sent the request."""
    try:
        local = ip_address(request.peer.partition("%")[0]).is_loopback
    except ValueError:
        return False
    host = urlsplit(f"//{request.headers.get('host', '')}")
    origin = request.headers.get("origin")
    named = host.hostname in ("127.0.0.1", "localhost", "::1")
    return local and named and (origin is None or urlsplit(origin).netloc == host.netloc)
