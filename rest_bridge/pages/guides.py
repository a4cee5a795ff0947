"""Writes /docs/<name>: the project's documents as pages with a side list, and the search index."""

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rest_bridge.pages.folding import fold_tables
from rest_bridge.pages.render import finish_tokens, is_web_address, make_parser, render_page
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry, Tier
from toolserver.registry.site_facts import (
    CODE_HISTORY,
    JSON,
    MARKDOWN,
    Document,
    LazyDocuments,
    SiteFacts,
    WriteDocument,
    tool_path,
)
from toolserver.registry.site_pages import pages

if TYPE_CHECKING:  # loaded when a page is made
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LIST = "README"
HISTORIES = ("api-changes", "comparisons")  # what was, and what others are
ABOUT_CODE = "Changing the code"  # the group of documents for those who change the service
SEARCH = "/docs/search.json"
_TOOL = re.compile(r"(?:\.\./)?tools/(\w+)\.md")
_COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)  # marks the generated parts of a file
_SUMMARY = re.compile(r"\[[^\]]*\]\(([\w-]+)\.md\): ([^\n]*)")
_LINK = re.compile(r"\[[^\]]*\]\(([\w-]+)\.md\)")


@dataclass(frozen=True, slots=True)
class GuideGroup:
    """A heading in the list of documents, with the name and the title of each document below it."""

    heading: str
    guides: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GuidePlace:
    """What is on a document's page, by heading and id, and the name and title of the documents before and after it."""

    contents: Sequence[tuple[str, str]]
    before: tuple[str, str] | None
    after: tuple[str, str] | None


class Guides:
    """The documents (Markdown) by name, in the order of the list in README.md."""

    def __init__(self, sources: Mapping[str, str], registry: Registry, facts: SiteFacts) -> None:
        self._sources, self._registry, self._facts = sources, registry, facts
        self.groups = list(self._read_groups(sources.get(LIST, "")))
        self._guides = [guide for group in self.groups for guide in group.guides]
        self._summaries = dict(_SUMMARY.findall(sources.get(LIST, "")))
        self._about_code = {name for group in self.groups if group.heading == ABOUT_CODE for name, _ in group.guides}

    @property
    def paths(self) -> list[str]:
        """The paths of the pages."""
        return [f"/docs/{name}" for name, _ in self._guides]

    def documents(self) -> LazyDocuments:
        """Return every page by its path, its Markdown next to it, and the search index."""
        writers: dict[str, WriteDocument] = {SEARCH: self._write_index}
        for at, (name, _) in enumerate(self._guides):
            writers[f"/docs/{name}"] = functools.partial(self._write_page, at)
            writers[f"/docs/{name}.md"] = functools.partial(Document, self._sources[name].encode(), MARKDOWN)
        return LazyDocuments(writers)

    def _write_page(self, at: int) -> Document:
        """Return the page of the document that stands at this place in the list."""
        name, title = self._guides[at]
        tokens = self._parse(name)
        contents = [(heading, slug) for heading, slug, _ in _split_sections(tokens) if heading]
        before = self._guides[at - 1] if at else None
        after = self._guides[at + 1] if at + 1 < len(self._guides) else None
        text = self._write(tokens)  # after the sections are read, as it changes links and headings for the page
        return self._render_page(name, title, text, GuidePlace(contents, before, after))

    def _write_index(self) -> Document:
        """Return what the search finds, as JSON: the sections of all documents, tools, pages and error codes."""
        entries = [
            *(entry for name, title in self._guides for entry in self._describe_sections(name, title)),
            *self._describe_tools(),
            *self._describe_pages(),
            *_describe_problems(),
        ]
        return Document(json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode(), JSON)

    def _parse(self, name: str) -> "list[Token]":
        return self._parser.parse(_COMMENT.sub("", self._sources[name]))

    def _read_groups(self, text: str) -> Iterator[GuideGroup]:
        for part in text.split("\n## ")[1:]:
            names = [name for name in _LINK.findall(part) if name in self._sources]
            titles = tuple((name, _find_title(self._sources[name])) for name in names)
            yield GuideGroup(part.partition("\n")[0], titles)

    def _render_page(self, name: str, title: str, text: Markup, place: GuidePlace) -> Document:
        return render_page(
            "guides.html",
            self._registry,
            self._facts,
            path=f"/docs/{name}",
            title=title,
            about=_first_sentence(self._sources[name]),
            markdown_path=f"/docs/{name}.md",
            scripts=["docs.js"],
            groups=self.groups,
            text=text,
            place=place,
        )

    @functools.cached_property
    def _parser(self) -> "MarkdownIt":
        return make_parser(lambda url: is_web_address(url) or ":" not in url)

    def _write(self, tokens: "list[Token]") -> Markup:
        _name_headings(tokens)
        for token in tokens:
            if token.children:
                self._lead_links(token.children)
        return finish_tokens(self._parser, fold_tables(tokens))

    def _lead_links(self, inline: "list[Token]") -> None:
        """Point links between documents at their pages. Links without a page, and pictures, become plain text."""
        opened: list[Token] = []
        for token in inline:
            if token.type == "image":  # its file is next to the document and is not served
                token.type, token.children = "text", None
            elif token.type == "link_open":
                opened.append(token)
                address = self._resolve_address(str(token.attrs.pop("href")))
                if address is None:
                    token.tag = "span"
                else:
                    token.attrs["href"] = address
            elif token.type == "link_close":
                token.tag = opened.pop().tag

    def _resolve_address(self, link: str) -> str | None:
        if is_web_address(link) or re.fullmatch(r"#[\w-]+", link):
            return link
        target, _, fragment = link.partition("#")
        tool = _TOOL.fullmatch(target)
        if tool is not None and (operation := self._registry.get(tool[1])) is not None:
            return self._facts.href(tool_path(operation))
        if target == "../CHANGELOG.md":
            return self._facts.href(CODE_HISTORY)
        name = target.removesuffix(".md")
        if name not in {listed for group in self.groups for listed, _ in group.guides}:
            return None
        return self._facts.href(f"/docs/{name}") + (f"#{fragment}" if fragment else "")

    def _describe_sections(self, name: str, title: str) -> Iterator[dict[str, str]]:
        """Yield the search entries of a document."""
        kind = "code" if name in self._about_code else "history" if name in HISTORIES else "guide"
        for heading, slug, text in _split_sections(self._parse(name)):
            entry = {"path": f"/docs/{name}#{slug}", "title": title, "heading": heading, "text": text}
            yield {**entry, "hint": self._summaries.get(name, ""), "kind": kind}

    def _describe_tools(self) -> Iterator[dict[str, str]]:
        """Yield the search entries of the tools."""
        for operation in self._registry:
            names = " ".join((operation.name, *operation.aliases)).replace("_", " ")
            text = f"{operation.name} {operation.path} {operation.description}".replace("`", "")
            entry = {"path": tool_path(operation), "title": operation.title, "heading": "", "text": text}
            kind = "tool" if operation.tier in (Tier.FREE, Tier.PREMIUM) else "account tool"
            yield {**entry, "hint": f"{names} {operation.search_hint}", "kind": kind}

    def _describe_pages(self) -> Iterator[dict[str, str]]:
        """Yield the search entries of the other pages for people."""
        for page in pages(self._registry):
            if page.label and page.media_type == "text/html":
                entry = {"path": page.path, "title": page.title, "heading": "", "text": page.summary}
                yield {**entry, "hint": page.label, "kind": "page"}


def _describe_problems() -> Iterator[dict[str, str]]:
    """Yield the search entries of the error codes."""
    for problem in PROBLEMS.values():
        text = f"{problem.meaning} {problem.advice}".replace("`", "")
        hint = f"{problem.code.replace('_', ' ')} {problem.status} error"
        entry = {"path": f"/problems/{problem.code}", "title": problem.code, "heading": "", "text": text}
        yield {**entry, "hint": hint, "kind": "error"}


def _name_headings(tokens: "list[Token]") -> None:
    """Give every heading except the title an id, in the form that GitHub uses."""
    taken: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            token.attrSet("id", _make_slug(tokens[index + 1].content, taken))


def _split_sections(tokens: "list[Token]") -> Iterator[tuple[str, str, str]]:
    """Yield the heading, the id and the plain text of every section."""
    taken = dict[str, int]()
    heading, slug, words = "", "content", list[str]()
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            if token.tag == "h1":
                continue
            yield heading, slug, " ".join(words)
            heading = _plain(tokens[index + 1])
            slug, words = _make_slug(tokens[index + 1].content, taken), []
        elif token.type in ("inline", "fence") and tokens[index - 1].type != "heading_open":
            words += _plain(token).split()
    yield heading, slug, " ".join(words)


def _plain(token: "Token") -> str:
    """Return the text of a paragraph, heading, cell or block of code as a reader sees it, without marks of Markdown."""
    if token.children is None:
        return token.content
    return _LINKED.sub(r"\1", "".join(" " if part.type == "softbreak" else part.content for part in token.children))


_LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def _make_slug(heading: str, taken: dict[str, int]) -> str:
    plain = re.sub(r"[^\w\- ]", "", _LINKED.sub(r"\1", heading).lower()).replace(" ", "-")
    taken[plain] = taken.get(plain, -1) + 1
    return plain if not taken[plain] else f"{plain}-{taken[plain]}"


def _find_title(source: str) -> str:
    return source.partition("\n")[0].removeprefix("# ").strip()


def _first_sentence(source: str) -> str:
    paragraphs = [part for part in source.split("\n\n")[1:] if part[:1].isalpha()]
    words: Any = _LINKED.sub(r"\1", " ".join(paragraphs[0].split())).replace("`", "") if paragraphs else ""
    return str(words)[:200]
