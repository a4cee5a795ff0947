"""Seal and open `requestState` by the boundary of the MCP SDK. Imported when the first state is needed.

The state of a call that waits for input travels through the client, which may change it,
repeat it, or give it to others. The boundary binds it to its method, tool and arguments, to a
principal, to this service and to a time. The SDK's server, which is not needed here, uses the
same boundary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp.server import ServerRequestContext
from mcp.server.request_state import InvalidRequestState, RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from toolserver.calls.payment_links import LIFE_S, TextSeal
from toolserver.mcp.messages import NAME


@dataclass(frozen=True, slots=True)
class _StatefulRequest:
    """What the boundary reads of a request."""

    params: Mapping[str, Any]
    principal: str | None
    method: str = "tools/call"


class SealCodec:
    """Encrypts states with keys that instances share and that are rotated with those that sign receipts."""

    def __init__(self, seal: TextSeal) -> None:
        self._seal = seal

    def seal(self, payload: bytes) -> str:
        return self._seal.seal(payload.decode())

    def unseal(self, token: str) -> bytes:
        content = self._seal.unseal(token)
        if content is None:
            raise InvalidRequestState("seal")
        return content.encode()


class RequestStates:
    """The states of calls of one service.

    `params` are the parameters of a call as its client sent them. `principal` is the account
    that it is from, or None: then a state is its holder's.
    """

    def __init__(self, seal: TextSeal) -> None:
        security = RequestStateSecurity(
            codec=SealCodec(seal), ttl=LIFE_S, bind_principal=lambda ctx: cast("_StatefulRequest", ctx).principal
        )
        self._boundary = RequestStateBoundary(security, default_audience=NAME)

    async def seal(self, params: Mapping[str, Any], principal: str | None, state: str) -> str:
        """Return a state as it is sent with the answer to a call."""

        async def answer(ctx: Any) -> dict[str, Any]:
            return {"resultType": "input_required", "requestState": state}

        result = await self._boundary(_as_context(params, principal), answer)
        return str(cast("dict[str, Any]", result)["requestState"])

    async def open(self, params: Mapping[str, Any], principal: str | None) -> str | None:
        """Return the state that a call brings back; None if it is not one of ours for exactly this call."""
        opened: list[str] = []

        async def read(ctx: Any) -> dict[str, Any]:
            opened.append(ctx.params["requestState"])
            return {}

        try:
            await self._boundary(_as_context(params, principal), read)
        except MCPError:
            return None
        return opened[0]


def _as_context(params: Mapping[str, Any], principal: str | None) -> ServerRequestContext[Any, Any]:
    return cast("ServerRequestContext[Any, Any]", _StatefulRequest(params, principal))
