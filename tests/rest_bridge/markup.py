"""Pages read as a browser reads them: tags that match, links, identifiers."""

from html.parser import HTMLParser

ALONE = {"br", "hr", "input", "link", "meta", "wbr"}
DATA = ("application/json", "application/ld+json")  # what browsers do not run


class Page(HTMLParser):
    """`faults` are tags that do not match; `links` every href; `ids` every id, in order; `scripts` what is loaded, and
    `inline_scripts` the text of those that the page carries itself.
    """

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.names: list[str] = []
        self.scripts: list[str] = []
        self.inline_scripts: list[str] = []
        self.is_data = False
        self.feed(body.decode())
        self.close()
        self.faults += self.open

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.is_data = dict(attrs).get("type") in DATA
        if tag == "script" and not self.is_data:
            self.scripts += [dict(attrs).get("src") or "of its own"]
        self.links += [value for name, value in attrs if name in ("href", "src")]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"/{tag}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and not self.is_data:
            self.inline_scripts.append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)
