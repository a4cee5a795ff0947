"""Serve one tool by bridges between MCP and web APIs: `python mcp_peers.py mcpo|fastapi-mcp`, under uvicorn.

`mcpo` serves the tools of an MCP server over REST; the server behind it is `tool`, in this file, over standard input.
`fastapi-mcp` serves a FastAPI application over MCP. Both need the first generation of the SDK, so the module does not
import toolserver and runs in an environment of its own. PAYLOAD names the file with the answer.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

ANSWER: dict[str, Any] = json.loads(Path(os.environ["PAYLOAD"]).read_text(encoding="utf-8"))


def find_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port


def announce_when_up(port: int, path: str) -> None:
    """Announce the address from a separate process, once the server answers anything."""
    if os.fork():
        return
    for _ in range(200):
        try:
            urlopen(f"http://127.0.0.1:{port}{path}").close()
            break
        except URLError as error:
            if getattr(error, "code", None):
                break
            time.sleep(0.1)
    print(json.dumps({"base_url": f"http://127.0.0.1:{port}"}), flush=True)
    os._exit(0)


def serve_tool() -> None:
    """Serve an MCP server of the Python SDK on standard input."""
    from mcp.server.fastmcp import FastMCP

    server: Any = FastMCP("peer", log_level="ERROR")

    @server.tool()  # type: ignore[untyped-decorator]
    def btc_price() -> dict[str, Any]:
        """The bitcoin price."""
        return ANSWER

    server.run()


def serve_mcpo() -> None:
    """Serve by mcpo, which this process becomes, with the server above behind it."""
    port = find_port()
    announce_when_up(port, "/openapi.json")
    mcpo = str(Path(sys.executable).with_name("mcpo"))
    behind = [sys.executable, __file__, "tool"]
    os.dup2(2, 1)  # mcpo prints a greeting; only the announcing process may write here
    os.execv(mcpo, [mcpo, "--host", "127.0.0.1", "--port", str(port), "--log-level", "ERROR", "--", *behind])


def serve_fastapi_mcp() -> None:
    """Serve a FastAPI application with one operation over MCP by fastapi-mcp."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi_mcp import FastApiMCP

    app = FastAPI()

    @app.get("/price", operation_id="btc_price")
    async def price() -> dict[str, Any]:
        return ANSWER

    FastApiMCP(app).mount_http(mount_path="/api/mcp")
    port = find_port()
    announce_when_up(port, "/price")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False, timeout_graceful_shutdown=1)


if __name__ == "__main__":
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # both write pages of tracebacks when they are stopped
    {"tool": serve_tool, "mcpo": serve_mcpo, "fastapi-mcp": serve_fastapi_mcp}[sys.argv[1]]()
