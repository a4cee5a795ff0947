"""Answer the methods of resources over HTTP: what a host or a person reads beside the answers of tools.

Views (MCP Apps) are pages that draw a tool's results in a host. A host that shows them names the view of a tool by the
`_meta` of its definition, reads it once and keeps it.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from toolserver.core.caller import Caller
from toolserver.mcp import messages
from toolserver.mcp.messages import INVALID_PARAMS, VIEW_TYPE, MessageRefusal
from toolserver.registry.registry import Registry

METHODS = frozenset({"resources/list", "resources/templates/list", "resources/read"})
RESOURCE_NOT_FOUND = -32002  # the legacy era's code; the modern one has INVALID_PARAMS
TTL_MS = 3_600_000


class ViewLibrary(Protocol):
    """Has the views of tools."""

    def find_address(self, name: str) -> str | None:
        """Return the URI of the view of a tool; None for a tool without one."""

    def read(self, uri: str) -> str | None:
        """Return the HTML at a URI, or None."""


class McpResources:
    """The methods of resources, for one service."""

    def __init__(self, registry: Registry, views: ViewLibrary) -> None:
        self._registry, self.views = registry, views
        self._listed: bytes | None = None

    async def answer(self, method: str, params: Mapping[str, Any], caller: Caller, *, modern: bool) -> bytes:
        """Return the core of a result. Raises MessageRefusal, without an id and with HTTP status 200."""
        if method == "resources/read":
            return await self._read(params.get("uri"), modern=modern)
        if params.get("cursor") is not None:
            raise MessageRefusal(200, INVALID_PARAMS, "There is only one page: this server never issues cursors.")
        if method == "resources/templates/list":
            return _write({"resourceTemplates": []}, modern=modern)
        if self._listed is None:
            self._listed = messages.encode([*self._list_views()])
        return _write({"resources": messages.Raw(self._listed)}, modern=modern)

    def _list_views(self) -> list[dict[str, Any]]:
        listed = ((operation, self.views.find_address(operation.name)) for operation in self._registry)
        return [
            {
                "uri": address,
                "name": f"{operation.name}.html",
                "title": f"{operation.title}: view",
                "mimeType": VIEW_TYPE,
            }
            for operation, address in listed
            if address is not None
        ]

    async def _read(self, uri: Any, *, modern: bool) -> bytes:
        if not isinstance(uri, str):
            raise MessageRefusal(200, INVALID_PARAMS, "`params.uri` must be the URI of a resource.")
        view = self.views.read(uri)
        if view is not None:
            shown = {"uri": uri, "mimeType": VIEW_TYPE, "text": view, "_meta": {"ui": {"prefersBorder": True}}}
            return _write({"contents": [shown]}, modern=modern)
        code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
        raise MessageRefusal(200, code, "Resource not found: resources/list has the URIs.", data={"uri": uri[:512]})


def _write(result: dict[str, Any], *, modern: bool) -> bytes:
    """Return the core of a result that every client may keep for an hour."""
    hints = {"ttlMs": TTL_MS, "cacheScope": "public"} if modern else {}
    return messages.encode({**result, **hints})[:-1]
