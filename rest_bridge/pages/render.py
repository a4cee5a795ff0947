"""Renders pages: Jinja2 templates with everything escaped, and Markdown turned into HTML by markdown-it-py.

A page's template stands beside its module and has its name. A template that ends in `.md`
writes Markdown, which is not escaped. Both libraries are loaded when the first page is made.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rest_bridge.pages.highlight import highlight, highlight_block
from rest_bridge.pages.modules import list_modules
from rest_bridge.pages.style_sheet import write_style
from rest_bridge.serving import START_SCRIPT, THEME_SCRIPT
from rest_bridge.static_files import read_static_files, static_path
from toolserver import API_VERSION, __version__
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.site_facts import (
    HTML,
    SERVICE,
    Document,
    SiteFacts,
    auth,
    duration,
    paragraphs,
    price,
    tool_path,
)
from toolserver.registry.site_pages import SitePage, pages

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


def render_page(
    template: str,
    registry: Registry,
    facts: SiteFacts,
    *,
    path: str,
    title: str,
    about: str = "",
    markdown_path: str | None = None,
    card: str | None = None,
    scripts: Sequence[str] = (),
    structured: Mapping[str, Any] | None = None,
    sections: tuple[str, ...] = (),
    **values: Any,
) -> Document:
    """Return a whole page.

    `path` is the page's path, marked in the navigation. `about` describes the page in a sentence for search engines and
    link previews. `markdown_path` is the path of its Markdown. `card` is the path of the picture in link previews; None
    stands for that of the site. `scripts` names modules in `static/js` to load beside `page.js`. `structured` is its
    schema.org description. `sections` names the sections of the style sheet that the page carries itself, to be painted
    without waiting for a file, and before its scripts start; without any it loads the whole sheet.
    """
    body = (
        _make_environment()
        .get_template(template)
        .render(
            registry=registry,
            facts=facts,
            path=path,
            title=title,
            about=about,
            markdown_path=markdown_path,
            card=card,
            scripts=list_modules(("page.js", *scripts)) if sections else ["page.js", *scripts],
            structured=structured,
            style=Markup(write_style(sections)) if sections else "",  # nosec B704 # our own file
            navigation=[page for page in pages(registry) if page.label],
            **values,
        )
    )
    return Document(body.encode(), HTML)


def render_text(template: str, **values: Any) -> str:
    """Return the text of a template without the surrounding page."""
    return _make_environment().get_template(template).render(**values)


def markdown_to_html(source: str, fold: "Callable[[Sequence[Token]], list[Token]]" = list) -> Markup:
    """Return a Markdown document as HTML. Markup in it is escaped, and only http and https links become links.

    Each table cell carries its heading, because tables turn into cards on narrow screens. The
    first paragraph after the title becomes the lead. `fold` folds long parts.
    """
    parser = _markdown_parser()
    return finish_tokens(parser, fold(parser.parse(source)))


def finish_tokens(parser: "MarkdownIt", tokens: "list[Token]") -> Markup:
    """Return parsed Markdown as HTML, with labelled cells and a lead."""
    _align_numbers(tokens)
    _label_cells(tokens)
    _mark_lead(tokens)
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # nosec B704 # the parser takes no HTML


def prose_to_html(sentence: str) -> Markup:
    """Return a sentence as HTML. Only `code` between backticks is markup; everything else is escaped."""
    return Markup(_prose_parser().renderInline(sentence))  # nosec B704 # the parser takes no HTML


def is_easy(operation: Operation) -> bool:
    """Return True if a tool answers a plain GET: it needs no token and no argument."""
    return operation.reads_only and auth(operation) == "none" and not operation.input_schema.get("required")


@functools.cache
def _make_environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("rest_bridge", "pages"),
        autoescape=select_autoescape(["html"], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"service": SERVICE, "version": __version__, "api_version": API_VERSION}
    environment.globals |= {
        "price": price,
        "auth": auth,
        "duration": duration,
        "paragraphs": paragraphs,
        "is_easy": is_easy,
    }
    environment.globals |= {"tool_path": tool_path, "static_path": static_path, "is_above": _is_above}
    environment.globals["theme_script"] = Markup(THEME_SCRIPT)  # nosec B704 # our own file
    environment.globals["start_script"] = Markup(START_SCRIPT)  # nosec B704 # our own file
    environment.globals["mark"] = Markup(read_static_files()["mark.svg"].body.decode())  # nosec B704 # our own file
    environment.filters |= {"prose": prose_to_html, "highlight": highlight}
    return environment


@functools.cache
def _markdown_parser() -> "MarkdownIt":
    return make_parser(is_web_address)


def make_parser(accept_link: Callable[[str], bool]) -> "MarkdownIt":
    """Return a parser of documents: tables, coloured code, no HTML, and links that `accept_link` accepts."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "highlight": highlight_block}).enable("table")
    parser.validateLink = accept_link  # type: ignore[assignment,method-assign]
    parser.add_render_rule("text", _write_text)
    return parser


def _write_text(renderer: "RendererHTML", tokens: "Sequence[Token]", at: int, *rest: Any) -> str:
    """Return a text, escaped. A date stays on one line: browsers would break it after a hyphen."""
    return _DATE.sub(r'<span class="short">\g<0></span>', renderer.text(tokens, at, *rest))


@functools.cache
def _prose_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("zero").enable("backticks")


def is_web_address(url: str) -> bool:
    """Return True if a URL is http or https."""
    return url.startswith(("https://", "http://"))


def _align_numbers(tokens: "Sequence[Token]") -> None:
    """Give columns that Markdown aligns to the right the class `number`: the pages' policy forbids inline styles."""
    for token in tokens:
        if token.type in ("th_open", "td_open") and "right" in str(token.attrs.pop("style", "")):
            token.attrSet("class", "number")


def _label_cells(tokens: "Sequence[Token]") -> None:
    """Give every cell of a table its heading as `data-label`, and make the first cell of a row its heading."""
    headings: list[str] = []
    column = 0
    for index, token in enumerate(tokens):
        if token.type == "table_open":
            token.attrSet("class", "narrow")
        elif token.type == "thead_open":
            headings = []
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            headings.append(tokens[index + 1].content)
            if headings[-1]:
                token.attrSet("scope", "col")
            else:  # an empty heading cell is no heading
                token.tag = tokens[index + 2].tag = "td"
        elif token.type in ("td_open", "td_close"):
            _label_cell(token, column, headings)
            column += token.type == "td_close"


def _label_cell(token: "Token", column: int, headings: Sequence[str]) -> None:
    if column == 0:
        token.tag = "th"
    if token.nesting == 1:
        token.attrSet(*(("scope", "row") if column == 0 else ("data-label", headings[column])))


def _mark_lead(tokens: "Sequence[Token]") -> None:
    """Mark the paragraph directly after the title as the page's lead."""
    for before, token in pairwise(tokens):
        if (before.type, before.tag, token.type) == ("heading_close", "h1", "paragraph_open"):
            token.attrSet("class", "lead")


def _is_above(page: SitePage, path: str, navigation: Sequence[SitePage]) -> bool:
    """Return True if the page at `path` is below `page` and not in the navigation, which then marks `page` instead."""
    under = path.startswith(f"{page.path}/")
    return under and not any(path == other.path for other in navigation)
