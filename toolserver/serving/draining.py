"""Stop taking connections, permanently or because another process takes over on the same socket."""

import asyncio

from toolserver.serving.connections import Connections, Listener
from toolserver.serving.request_gate import RequestGate

HAND_OVER_S = 5.0  # for clients to send the next request on a kept connection and learn that it ends
LOOK_S = 0.05


async def stop_accepting(gate: RequestGate, listener: Listener, connections: Connections, grace_s: float) -> None:
    """Stop taking connections and answer requests in progress, within a limit in seconds.

    A service that ends refuses new requests during this time. A service that is replaced by another process on the same
    socket leaves new connections to that process and answers requests on its own connections. Each of these answers is
    the last on its connection and says so, so that no client sends a request that nobody reads.
    """
    if gate.is_replaced():
        listener.close()
        gate.end_connections()
        await _wait_until_left(gate, connections)
    await gate.stop(grace_s)
    listener.close()


async def _wait_until_left(gate: RequestGate, connections: Connections) -> None:
    """Wait until every client has left, for at most HAND_OVER_S, or until the service must end."""
    loop = asyncio.get_running_loop()
    until = loop.time() + HAND_OVER_S
    while len(connections) and gate.is_replaced() and loop.time() < until:  # noqa: ASYNC110 - three things at once
        await asyncio.sleep(LOOK_S)
