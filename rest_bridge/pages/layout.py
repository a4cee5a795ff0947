"""The frame of every page: head, navigation, footer."""

from rest_bridge.pages.html import Html, tag
from toolserver import API_VERSION, __version__
from toolserver.documents import HTML, PAYMENTS, SERVICE, Document, Facts, sells
from toolserver.registry import Registry


def page(
    registry: Registry, facts: Facts, path: str, title: str, *content: object, markdown: str | None = None
) -> Document:
    """A whole page. `path` is its own, marked in the navigation; `markdown` is where it stands as Markdown."""
    other = tag("link", rel="alternate", type="text/markdown", href=facts.href(markdown)) if markdown else ""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title if path == "/" else f"{title} · {SERVICE}"),
        tag("link", rel="stylesheet", href=facts.href("/style.css")),
        tag("link", rel="canonical", href=facts.url(path)),
        tag("link", rel="service-desc", type="application/json", href=facts.href("/openapi.json")),
        other,
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    banner = _simulated() if facts.simulated else ""
    body = tag(
        "body",
        skip,
        _navigation(registry, facts, path),
        banner,
        tag("main", *content, id="content"),
        _footer(facts),
    )
    return Document(f"<!doctype html>{tag('html', head, body, lang='en')}".encode(), HTML)


def link(facts: Facts, path: str, words: object, **attributes: object) -> Html:
    """A link to a path of this server."""
    return tag("a", words, href=facts.href(path), **attributes)


def _navigation(registry: Registry, facts: Facts, path: str) -> Html:
    pages = {"/docs": "Tools", **({PAYMENTS: "Payments"} if sells(registry) else {}), "/changelog": "Changelog"}
    links = [link(facts, at, words, aria_current="page" if at == path else None) for at, words in pages.items()]
    links += [link(facts, "/openapi.json", "OpenAPI"), link(facts, "/llms.txt", "llms.txt")]
    return tag("header", link(facts, "/", SERVICE, class_="brand"), tag("nav", *links, aria_label="Main"))


def _simulated() -> Html:
    words = "This server answers from a simulated world. Every value is invented, for trying things out."
    return tag("p", words, class_="banner", role="note")


def _footer(facts: Facts) -> Html:
    contact = tag("span", f"Contact: {facts.contact}") if facts.contact else ""
    return tag(
        "footer",
        tag("span", f"{SERVICE} {__version__}, API {API_VERSION}"),
        link(facts, "/api/meta", "Service facts"),
        link(facts, "/problems", "Error codes"),
        link(facts, "/docs#licence", "Licence of the data"),
        contact,
    )
