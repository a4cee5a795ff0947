"""Serve the RPC servers and the facilitator of the simulated world off anvil instead of the injected payments."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tools.simulated import base_chain, x402_facilitator
from toolserver.world.anvil_chain import AnvilChain
from toolserver.world.anvil_node import USDC, word
from toolserver.world.model import ROUTES, Ask, Edits, Handler, Reply, Route, World

RELAY = "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"  # the account of the facilitator, whose key is public


def _answering(route: Route) -> Callable[[AnvilChain], Route]:
    """Return what makes an RPC server answer with what anvil says."""
    return lambda chain: replace(route, handler=chain.answer)


def _verifying(chain: AnvilChain) -> Route:
    return replace(x402_facilitator.verify, handler=_seeing(chain, x402_facilitator.verify.handler))


def _settling(chain: AnvilChain) -> Route:
    """Return the route that submits the payments that it verified, each once."""
    route, submitted = x402_facilitator.settle, dict[str, str]()
    verify = _seeing(chain, route.handler)

    def answer(world: World, ask: Ask) -> Reply:
        reply = verify(world, ask)
        if not reply.records:
            return reply
        payload = ask.json["paymentPayload"]["payload"]
        nonce = str(payload["authorization"]["nonce"]).lower()
        if nonce not in submitted:
            submitted[nonce] = chain.node.send(RELAY, USDC, _call_of(payload))
        return Reply.json(json.loads(reply.body) | {"transaction": submitted[nonce]})

    forms = {kind: _seeing(chain, form) for kind, form in route.forms.items()}
    return replace(route, handler=answer, forms=forms)


def _seeing(chain: AnvilChain, handler: Handler) -> Handler:
    """Return a handler that sees the payments on anvil where it looks for those of the world."""

    def answer(world: World, ask: Ask) -> Reply:
        return handler(replace(world, edits=Edits(world.edits.pins, chain.read_transfers())), ask)

    return answer


def _call_of(payload: dict[str, Any]) -> str:
    """Return the call of `transferWithAuthorization` with the signature as v, r and s."""
    signed, signature = payload["authorization"], payload["signature"].removeprefix("0x")
    words = [word(signed["from"]), word(signed["to"])]
    words += [f"{int(signed[name]):064x}" for name in ("value", "validAfter", "validBefore")]
    words += [signed["nonce"].removeprefix("0x"), f"{signature[128:130]:0>64}", signature[:64], signature[64:128]]
    return f"0xe3ee160e{''.join(words)}"


ROUTES.on_node += [(_route, _answering(_route)) for _route in ROUTES.all if _route.host in base_chain.HOSTS]
ROUTES.on_node += [(x402_facilitator.verify, _verifying), (x402_facilitator.settle, _settling)]
