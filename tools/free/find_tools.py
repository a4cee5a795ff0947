"""GET /api/find-tools."""

from typing import Annotated, Any, Literal

from pydantic import Field

from toolserver import NotFound, Payload, ToolContext, tool, up_to

MOST = 20
LONGEST = 300  # characters of a query


class FoundTool(Payload):
    name: str = Field(examples=["weather"], description="The name that it is called by")
    title: str = Field(description="For people", examples=["Weather"])
    description: str = Field(description="What it answers, for models")
    tier: Literal["free", "premium", "payment", "account"] = Field(description="Who may call it")
    cost_credits: int = Field(ge=0, description="Credits a call costs; 0: none")
    input_schema: dict[str, Any] = Field(description="Its arguments, as a JSON Schema")
    rest: str = Field(examples=["GET /api/weather"], description="How to call it by HTTP, on this host")
    arguments_in: dict[str, Literal["path", "query", "body"]] = Field(description="Where each argument goes by HTTP")
    mcp: str = Field(description="How to call it over MCP, also from a host that does not list it")


class FoundTools(Payload):
    query: str | None = Field(description="The query as it was sent; null: none")
    tools: list[FoundTool] = Field(max_length=MOST, description="Best first; empty: no tool has any of the words")


@tool(
    path="/api/find-tools",
    title="Find a tool",
    search_hint="which tool can search discover list all tools capabilities help",
    toolset="core",
    always_loaded=True,
    runs_tools=True,
    spaced=False,
)
async def find_tools(
    ctx: ToolContext,
    q: Annotated[
        str | None,
        Field(max_length=LONGEST, description="The question, in everyday words", examples=["air quality"]),
    ] = None,
    limit: Annotated[int, up_to(MOST)] = 5,
) -> FoundTools:
    """The tools of this service that answer a question, best first, with arguments and prices. Use it when no listed
    tool fits.

    Shape: whole definitions, best first; misspelt words are taken for the most similar ones. Without `q` it lists the
    first tools. Nothing is sent to anyone: the search is this service's own.
    """
    index = ctx.host.tools
    if index is None:
        raise NotFound("This instance does not search its tools.")
    return FoundTools.model_validate({"query": q, "tools": index.describe(q or "", limit)})
