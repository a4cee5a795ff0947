"""Writes /docs/<name>: the project's documents as pages with a side list, and the search index."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rest_bridge.pages.folding import fold_tables
from rest_bridge.pages.render import finish_tokens, is_web_address, render_page
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import JSON, MARKDOWN, Document, SiteFacts, tool_path

if TYPE_CHECKING:  # loaded when a page is made
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LIST = "README"
SEARCH = "/docs/search.json"
_TOOL = re.compile(r"(?:\.\./)?tools/(\w+)\.md")
_COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)  # marks the generated parts of a file
_LINK = re.compile(r"\[[^\]]*\]\(([\w-]+)\.md\)")


@dataclass(frozen=True, slots=True)
class GuideGroup:
    """A heading in the list of documents, with the name and the title of each document below it."""

    heading: str
    guides: tuple[tuple[str, str], ...]


class Guides:
    """The documents (Markdown) by name, in the order of the list in README.md."""

    def __init__(self, sources: Mapping[str, str], registry: Registry, facts: SiteFacts) -> None:
        self._sources, self._registry, self._facts = sources, registry, facts
        self.groups = list(self._read_groups(sources.get(LIST, "")))

    def documents(self) -> dict[str, Document]:
        """Return every page by its path, its Markdown next to it, and the search index."""
        documents: dict[str, Document] = {}
        entries: list[dict[str, str]] = []
        parser = _make_parser()
        for name, title in (guide for group in self.groups for guide in group.guides):
            path = f"/docs/{name}"
            tokens = parser.parse(_COMMENT.sub("", self._sources[name]))
            for heading, slug, text in _split_sections(tokens):  # before links and headings are changed for the page
                entries.append({"path": f"{path}#{slug}", "title": title, "heading": heading, "text": text})
            documents[path] = self._render_page(name, title, self._write(parser, tokens))
            documents[f"{path}.md"] = Document(self._sources[name].encode(), MARKDOWN)
        index = json.dumps([*entries, *self._describe_tools()], ensure_ascii=False, separators=(",", ":"))
        return documents | {SEARCH: Document(index.encode(), JSON)}

    def _read_groups(self, text: str) -> Iterator[GuideGroup]:
        for part in text.split("\n## ")[1:]:
            names = [name for name in _LINK.findall(part) if name in self._sources]
            titles = tuple((name, _find_title(self._sources[name])) for name in names)
            yield GuideGroup(part.partition("\n")[0], titles)

    def _render_page(self, name: str, title: str, text: Markup) -> Document:
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
        )

    def _write(self, parser: "MarkdownIt", tokens: "list[Token]") -> Markup:
        _name_headings(tokens)
        for token in tokens:
            if token.children:
                self._lead_links(token.children)
        return finish_tokens(parser, fold_tables(tokens))

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
        name = target.removesuffix(".md")
        if name not in {listed for group in self.groups for listed, _ in group.guides}:
            return None
        return self._facts.href(f"/docs/{name}") + (f"#{fragment}" if fragment else "")

    def _describe_tools(self) -> Iterator[dict[str, str]]:
        """Yield the search entries of the tools."""
        for operation in self._registry:
            text = f"{operation.name} {operation.path} {operation.description}"
            yield {"path": tool_path(operation), "title": operation.title, "heading": "", "text": text}


def _make_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.validateLink = lambda url: is_web_address(url) or ":" not in url  # type: ignore[method-assign]
    return parser


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
            heading = tokens[index + 1].content.replace("`", "")
            slug, words = _make_slug(tokens[index + 1].content, taken), []
        elif token.type in ("inline", "fence") and tokens[index - 1].type != "heading_open":
            words += _LINKED.sub(r"\1", token.content).replace("`", "").split()
    yield heading, slug, " ".join(words)


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
