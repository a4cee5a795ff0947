"""Answer the methods of resources and skills: what a host or a person reads beside the answers of tools.

| URI | |
|---|---|
| `ui://toolserver/<tool>.<digest>.html` | the view of a tool (MCP Apps), which draws its results in a host |
| `skill://<name>/SKILL.md` | how an agent does something with several tools |
| `toolserver://docs/<name>` | a document, as Markdown |
| `toolserver://answers/<tool>?<arguments>` | the answer of a free tool, within the limits of that tool |
| `toolserver://receipts/<id>` | a receipt, for the token that paid |

Nothing is sold here, because hosts read resources on their own.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from toolserver.calls.pipeline import Pipeline
from toolserver.core.caller import Caller, well_formed
from toolserver.errors import CallRejected, RateLimited
from toolserver.mcp import messages
from toolserver.mcp.messages import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    RECEIPTS,
    RESOURCE_NOT_FOUND,
    RESOURCES_CAPABILITIES,
    SKILLS_KEY,
    VIEW_TYPE,
    MessageRefusal,
)
from toolserver.mcp.skills import Skill
from toolserver.money.receipts.service import ReceiptService
from toolserver.registry.registry import Operation, Registry, Tier

METHODS = frozenset({"resources/list", "resources/templates/list", "resources/read", "skills/list", "skills/get"})
TTL_MS = 3_600_000
DOCS, ANSWERS = "toolserver://docs/", "toolserver://answers/"
LISTED_DOCUMENTS = (
    "connecting",
    "tools",
    "billing",
    "receipts",
    "webhooks",
    "events",
    "apps",
    "limits",
    "errors",
    "x402",
)
_MARKDOWN, _JSON = "text/markdown", "application/json"
_TEMPLATES = [
    {
        "uriTemplate": ANSWERS + "{tool}{?arguments*}",
        "name": "answers",
        "title": "Answer of a free tool",
        "description": "The same JSON as the tool's, within its limits; for example toolserver://answers/forex",
        "mimeType": _JSON,
    },
    {
        "uriTemplate": RECEIPTS + "{receipt_id}",
        "name": "receipts",
        "title": "Receipt of a paid call",
        "description": "For the token that paid, which the connection has to carry",
        "mimeType": _JSON,
    },
    {"uriTemplate": DOCS + "{name}", "name": "docs", "title": "Document", "mimeType": _MARKDOWN},
]


class McpResources:
    """The methods of resources and skills, for one service. `read_document` returns a document by its name.

    `find_view` returns the URI of the view of a tool by its name, and `read_view` the HTML at
    a URI; None where there is none. `skills` are by URI. Without `evidence` there are no
    receipts.
    """

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        *,
        find_view: Callable[[str], str | None],
        read_view: Callable[[str], str | None],
        read_document: Callable[[str], str | None],
        skills: Mapping[str, Skill],
        evidence: ReceiptService | None,
    ) -> None:
        self._registry, self._pipeline = registry, pipeline
        self.find_view, self._read_view = find_view, read_view
        self._read_document, self._skills, self._evidence = read_document, skills, evidence
        self._listed: bytes | None = None

    @property
    def capabilities(self) -> dict[str, Any]:
        """What a server with these resources also says of itself. A client that shows views says so, too."""
        extensions: dict[str, Any] = RESOURCES_CAPABILITIES["extensions"]
        left = {key: value for key, value in extensions.items() if self._skills or key != SKILLS_KEY}
        return RESOURCES_CAPABILITIES | {"extensions": left}

    async def answer(self, method: str, params: Mapping[str, Any], caller: Caller, *, modern: bool) -> bytes:
        """Return the core of a result. Raises MessageRefusal, without an id and with HTTP status 200."""
        if method in ("resources/read", "skills/get"):
            uri = params.get("uri")
            if not isinstance(uri, str):
                raise MessageRefusal(200, INVALID_PARAMS, "`params.uri` must be the URI of a resource.")
            if method == "skills/get":
                return self._describe_skill(uri, modern=modern)
            return await self._read(uri, caller, modern=modern)
        if params.get("cursor") is not None:
            raise MessageRefusal(200, INVALID_PARAMS, "There is only one page: this server never issues cursors.")
        if method == "resources/templates/list":
            return _write({"resourceTemplates": _TEMPLATES}, modern=modern)
        if method == "skills/list":
            return _write({"skills": [skill.describe() for skill in self._skills.values()]}, modern=modern)
        if self._listed is None:
            self._listed = messages.encode([*self._list_skills(), *self._list_documents(), *self._list_views()])
        return _write({"resources": messages.Raw(self._listed)}, modern=modern)

    def _list_skills(self) -> list[dict[str, Any]]:
        return [
            {
                "uri": skill.uri,
                "name": skill.name,
                "description": skill.frontmatter["description"],
                "mimeType": _MARKDOWN,
                "size": len(skill.text.encode()),
            }
            for skill in self._skills.values()
        ]

    def _list_documents(self) -> list[dict[str, Any]]:
        texts = ((name, self._read_document(name)) for name in LISTED_DOCUMENTS)
        return [
            {
                "uri": DOCS + name,
                "name": name,
                "title": text.partition("\n")[0].removeprefix("# "),
                "mimeType": _MARKDOWN,
                "size": len(text.encode()),
            }
            for name, text in texts
            if text is not None
        ]

    def _list_views(self) -> list[dict[str, Any]]:
        listed = ((operation, self.find_view(operation.name)) for operation in self._registry)
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

    def _describe_skill(self, uri: str, *, modern: bool) -> bytes:
        if uri not in self._skills:
            raise MessageRefusal(200, INVALID_PARAMS, "There is no such skill: skills/list has the URIs.")
        return _write({"skill": self._skills[uri].describe()}, modern=modern)

    async def _read(self, uri: str, caller: Caller, *, modern: bool) -> bytes:
        if (fixed := self._read_fixed(uri)) is not None:
            return _write({"contents": [{"uri": uri, **fixed}]}, modern=modern)
        code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
        try:
            text = await self._read_changing(uri, caller)
        except RateLimited as limited:
            raise MessageRefusal(200, INVALID_REQUEST, limited.detail, data=limited.extra) from None
        except CallRejected as rejected:
            data = {"uri": uri[:512], "error": rejected.code, **rejected.extra}
            raise MessageRefusal(200, INVALID_PARAMS, rejected.detail, data=data) from None
        if text is None:
            words = "Resource not found: resources/list and resources/templates/list have the URIs."
            raise MessageRefusal(200, code, words, data={"uri": uri[:512]})
        return _write({"contents": [{"uri": uri, "mimeType": _JSON, "text": text}]}, modern=modern, is_kept=False)

    def _read_fixed(self, uri: str) -> dict[str, Any] | None:
        """Return the content of what is the same for everybody, or None."""
        if (skill := self._skills.get(uri)) is not None:
            return {"mimeType": _MARKDOWN, "text": skill.text}
        if uri.startswith(DOCS):
            text = self._read_document(uri.removeprefix(DOCS))
            return None if text is None else {"mimeType": _MARKDOWN, "text": text}
        view = self._read_view(uri)
        if view is None:
            return None
        return {"mimeType": VIEW_TYPE, "text": view, "_meta": {"ui": {"prefersBorder": True}}}

    async def _read_changing(self, uri: str, caller: Caller) -> str | None:
        """Return an answer or a receipt as JSON; None if there is none. Raises CallRejected."""
        if uri.startswith(ANSWERS):
            name, _, query = uri.removeprefix(ANSWERS).partition("?")
            operation = self._registry.get(name)
            if operation is None or not can_be_read(operation):
                return None
            arguments = dict(parse_qsl(query, keep_blank_values=True))
            outcome = await self._pipeline.call(operation, arguments, caller)
            return outcome.rendered.payload.decode()
        if uri.startswith(RECEIPTS) and self._evidence is not None and caller.token is not None:
            await self._pipeline.count_personal(caller, "receipt")
            if well_formed(caller.token):
                receipt = await self._evidence.receipt(uri.removeprefix(RECEIPTS), caller.token)
                return None if receipt is None else messages.encode(receipt).decode()
        return None


def can_be_read(operation: Operation) -> bool:
    """Return True for a tool whose answers are resources: free, read only, and it runs no other tool."""
    return (
        operation.tier is Tier.FREE and operation.reads_only and operation.method == "GET" and not operation.runs_tools
    )


def _write(result: dict[str, Any], *, modern: bool, is_kept: bool = True) -> bytes:
    """Return the core of a result. `is_kept`: every client may keep it for an hour, otherwise none."""
    hints = {"ttlMs": TTL_MS if is_kept else 0, "cacheScope": "public" if is_kept else "private"}
    return messages.encode({**result, **(hints if modern else {})})[:-1]
