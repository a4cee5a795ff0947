"""Faults of the Model Context Protocol."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "toolserver/mcp/credentials.py",
        "a spent token is lost",
        "if other != token] + [token]",
        "if other != token]",
        "tests/mcp/test_credentials.py",
    ),
    fault(
        "toolserver/mcp/messages.py",
        "an object of another version of JSON-RPC is a message",
        'if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":',
        "if not isinstance(message, dict):",
        "tests/mcp/test_messages.py",
    ),
    fault(
        "toolserver/mcp/messages.py",
        "arguments that are no object reach the tool",
        'if not isinstance(params.get("arguments"), dict | None):',
        "if False:",
        "tests/mcp/test_messages.py",
    ),
    fault(
        "toolserver/mcp/elicitation.py",
        "the state of an account opens for everybody",
        "states.seal(call.params, account, state)",
        "states.seal(call.params, None, state)",
        "tests/mcp/test_elicitation.py",
    ),
    fault(
        "toolserver/mcp/elicitation.py",
        "a state goes with any arguments",
        '"arguments": self.arguments}',
        '"arguments": {}}',
        "tests/mcp/test_elicitation.py",
    ),
    fault(
        "toolserver/mcp/elicitation.py",
        "a person who declines is waited for",
        "if not _is_accepted(call.message):",
        "if False:",
        "tests/mcp/test_elicitation.py",
    ),
)
