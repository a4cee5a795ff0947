"""/problems and /problems/<code>: what every `type` of a problem leads to."""

import json

from rest_bridge.pages.html import Html, prose, table, tag
from rest_bridge.pages.layout import link, page
from toolserver.documents import Document, Facts, sells
from toolserver.problems import PROBLEMS, Problem, example
from toolserver.registry import Registry

__all__ = ["PROBLEMS", "problem_page", "problems_page"]

_ON_MCP = "On MCP the same JSON is the text of a tool result with `isError`; the HTTP status is 200 there."


def problems_page(registry: Registry, facts: Facts) -> Document:
    """All codes, those about payment only where something is sold."""
    listed = [problem for problem in PROBLEMS.values() if sells(registry) or not problem.about_payment]
    return page(
        registry,
        facts,
        "/problems",
        "Error codes",
        tag("h1", "Error codes"),
        tag("p", prose(f"Failures are `application/problem+json` (RFC 9457) with the code in `error`. {_ON_MCP}")),
        table(("Code", "Status", "Meaning"), (_row(problem, facts) for problem in listed)),
    )


def _row(problem: Problem, facts: Facts) -> list[object]:
    return [link(facts, f"/problems/{problem.code}", problem.code), problem.status, prose(problem.meaning)]


def problem_page(registry: Registry, facts: Facts, problem: Problem) -> Document:
    """One code: what it means, what to do, what the body looks like."""
    shown = example(problem, facts=facts, request_id="…")
    return page(
        registry,
        facts,
        f"/problems/{problem.code}",
        problem.title,
        tag("p", link(facts, "/problems", "Error codes"), class_="soft"),
        tag("h1", problem.title),
        tag("p", tag("code", problem.code), f" · HTTP {problem.status}", class_="lead"),
        tag("h2", "What happened"),
        tag("p", prose(problem.meaning)),
        tag("h2", "What to do"),
        tag("p", prose(problem.advice)),
        tag("h2", "The body"),
        tag("pre", tag("code", json.dumps(shown, indent=2, ensure_ascii=False))),
        _members(problem),
        tag("p", prose(_ON_MCP), class_="soft"),
    )


def _members(problem: Problem) -> Html:
    if not problem.members:
        return Html("")
    return tag("p", prose(f"Further members: {', '.join(f'`{name}`' for name in problem.members)}."))
