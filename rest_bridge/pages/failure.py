"""Writes the page that a browser gets instead of problem+json if an address has no page or a page fails."""

from collections.abc import Mapping
from typing import Any

from rest_bridge.asgi import Scope
from rest_bridge.pages.render import render_page
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import Document, SiteFacts


def failure_page(registry: Registry, facts: SiteFacts, problem: Mapping[str, Any]) -> Document:
    """Return the page of a failure. `problem` is the body that programs get."""
    nearest = [path for path in problem.get("did_you_mean", ()) if "{" not in path]
    return render_page(
        "failure.html", registry, facts, path="", title=problem["title"], problem=problem, nearest=nearest
    )


def is_for_people(scope: Scope) -> bool:
    """Return True if a request comes from a browser: its Accept names HTML, and its path is not an API path."""
    path: str = scope["path"]
    accepts = any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])
    return accepts and scope["method"] in ("GET", "HEAD") and not path.startswith(("/api/", "/.well-known/"))
