"""Ways in which a JSON-RPC server answers wrongly: what `Fake.wrong` is set to."""

import asyncio

from aiohttp import web


async def hang(*_):
    await asyncio.sleep(5)


def rpc_error(code=-32005, message="limit exceeded"):
    return lambda call, said: {"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}}


def body(text, status=200, kind="application/json"):
    return lambda call, said: web.Response(text=text, status=status, content_type=kind)


def only(method, wrong):
    return lambda call, said: wrong(call, said) if call["method"] == method else said
