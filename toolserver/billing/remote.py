"""Another service over HTTP: requests that are bounded in time and answers that are bounded in size."""

from collections.abc import Mapping
from typing import NamedTuple

import anyio
import httpx

from toolserver.errors import ToolserverError

Transport = httpx.AsyncBaseTransport

CONNECT_S = 1.0
MOST_BYTES = 65_536
CONNECTIONS = 64
KEPT_S = 4.0  # servers close idle connections after 5 s: a request on its way just then would be lost


class Unreachable(ToolserverError):
    """No whole answer came in time. What was asked for may have been done."""


class Answer(NamedTuple):
    """What came back. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Remote:
    """Asks one service, and follows it nowhere else."""

    def __init__(self, url: str, *, transport: Transport | None = None) -> None:
        self._client = httpx.AsyncClient(
            base_url=url,
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=KEPT_S),
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "toolserver"},
        )

    async def ask(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str], within_s: float
    ) -> Answer:
        """One request, one answer. Raises Unreachable."""
        timeout = httpx.Timeout(within_s, connect=min(CONNECT_S, within_s))
        try:
            with anyio.fail_after(within_s):
                async with self._client.stream(
                    method, path.lstrip("/"), content=body, headers=headers, timeout=timeout
                ) as response:
                    return Answer(response.status_code, response.headers, await _read(response))
        except (httpx.HTTPError, TimeoutError) as failure:
            raise Unreachable(type(failure).__name__) from failure

    async def aclose(self) -> None:
        await self._client.aclose()


async def _read(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise Unreachable("the answer is too long")
    return body
