"""Writes /problems and /problems/<code>, the pages that the `type` of every problem leads to."""

import json

from rest_bridge.pages.render import render_page
from toolserver.registry.error_codes import PROBLEMS, ErrorCode, concerns_payment, example
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import Document, SiteFacts, sells

_ON_MCP = "On MCP, the same JSON is the text of a tool result with `isError`, and the HTTP status is 200."


def problems_page(registry: Registry, facts: SiteFacts) -> Document:
    """Return the page of all codes; codes about payment are listed only if something is sold."""
    return render_page(
        "problems.html",
        registry,
        facts,
        path="/problems",
        title="Error codes",
        problems=[problem for problem in PROBLEMS.values() if sells(registry) or not concerns_payment(problem)],
        on_mcp=_ON_MCP,
    )


def problem_page(registry: Registry, facts: SiteFacts, problem: ErrorCode) -> Document:
    """Return the page of one code: what it means, what to do about it, and what the body looks like."""
    return render_page(
        "problem.html",
        registry,
        facts,
        path=f"/problems/{problem.code}",
        title=problem.title,
        problem=problem,
        is_payment=problem.status == 402 and sells(registry),
        body=json.dumps(example(problem, facts=facts, request_id="…"), indent=2, ensure_ascii=False),
        on_mcp=_ON_MCP,
    )
