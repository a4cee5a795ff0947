"""OAuth by the Python SDK's own code: `oauth.py URL CALLBACK`, which says and reads the same as `oauth.mjs`."""

import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


class Kept:
    """Where the SDK keeps what it got."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def say(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


async def main(url: str, callback: str) -> None:
    kept, answered = Kept(), {}

    async def opened(address: str) -> None:
        say({"open": address})

    async def called_back() -> AuthorizationCodeResult:
        line = await anyio.to_thread.run_sync(sys.stdin.readline)
        given = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
        answered.update(given)
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))

    asked = OAuthClientMetadata.model_validate({"client_name": "Python SDK", "redirect_uris": [callback]})
    provider = OAuthClientProvider(url, asked, kept, opened, called_back)
    http = httpx2.AsyncClient(auth=provider, timeout=60)
    async with http, streamable_http_client(url, http_client=http) as streams:
        async with ClientSession(*streams[:2]) as session:
            await session.initialize()

            async def call(name: str) -> Any:
                return json.loads((await session.call_tool(name)).content[0].text)

            premium, balance = await call("premium_briefing"), await call("payment_balance")
            assert kept.client is not None
            assert kept.tokens is not None
            known = {"client_name": kept.client.client_name, "client_id": kept.client.client_id}
            said = {"premium": premium, "balance": balance, "client": known}
            say({**said, "iss": answered["iss"], "expires_in": kept.tokens.expires_in})
            first = kept.tokens
            provider.context.token_expiry_time = 1  # as after an hour: it refreshes by itself
            tools = len((await session.list_tools()).tools)
            say({"refreshed": kept.tokens.refresh_token != first.refresh_token, "tools": tools})


anyio.run(main, *sys.argv[1:])
