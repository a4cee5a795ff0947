"""What the suite's fixtures ask of a tool that answers with data: a text, an error, and an answer without log messages.

The pictures, sounds, prompts, resources and questions to the user that the other fixtures are about no tool here has.
"""

from toolserver.context.context import ToolContext
from toolserver.core.models import Payload
from toolserver.errors import NotSupported
from toolserver.registry.registry import tool


class Said(Payload):
    text: str


@tool(path="/api/conformance/simple-text", title="Simple text", ttl_s=60, toolset="core")
async def test_simple_text(ctx: ToolContext) -> Said:
    """The text that the conformance suite reads from a plain call, always the same. Use test_error_handling to fail."""
    return Said(text="This is a simple text response for testing.")


@tool(path="/api/conformance/error", title="Error", toolset="core")
async def test_error_handling(ctx: ToolContext) -> Said:
    """Always fails, so that the conformance suite sees how an error is told. Use test_simple_text for an answer."""
    raise NotSupported("This tool intentionally returns an error for testing.")


@tool(path="/api/conformance/logging", title="Quiet", ttl_s=60, toolset="core")
async def test_logging_tool(ctx: ToolContext) -> Said:
    """Answers without a word about how, as is asked of a call that names no log level. It exists for tests only."""
    return Said(text="Nothing was logged to the client.")
