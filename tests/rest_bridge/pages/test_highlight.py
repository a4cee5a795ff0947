"""Coloured code: the words stay what they were, and nothing in them becomes markup."""

import html
import re

import pytest

from rest_bridge.pages.highlight import highlight, read_languages
from rest_bridge.pages.render import markdown_to_html


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def kinds(code: str, language: str) -> dict[str, str]:
    found = re.findall(r'<span class="code-(\w+)">(.*?)</span>', highlight(code, language))
    return {html.unescape(word): kind for kind, word in found}


@pytest.mark.parametrize("language", [*read_languages(), "bash", "typescript", "none", ""])
@pytest.mark.parametrize("code", ['<b a="1">&', "'x' # y\n\"z", "", '{"a": [1, null]}\n', "// \u2028 `${a}`"])
def test_colours_add_and_lose_no_letter(code, language):
    assert plain(highlight(code, language)) == code


def test_words_have_the_kind_that_they_have_in_their_language():
    assert kinds('{"a": "b", "c": -1.5e3, "d": null}', "json") == {
        '"a"': "key", '"b"': "string", '"c"': "key", "-1.5e3": "number", '"d"': "key", "null": "word",
    }  # fmt: skip
    assert kinds("import os  # why\nx = f'y'", "python") == {"import": "word", "# why": "comment", "f'y'": "string"}
    assert kinds('curl -H "A: $B" https://x.example/pip', "bash") == {"curl": "word", "-H": "key", '"A: $B"': "string"}
    assert kinds("const a = `b`;", "ts") == {"const": "word", "`b`": "string"}
    assert kinds("[a]\nb = 1", "toml") == {"b": "key", "1": "number"}
    assert kinds("import os", "rust") == {}


def test_documents_have_their_code_coloured():
    text = markdown_to_html("```python\nimport os\n```\n\n```\nimport <os>\n```\n")
    assert '<code class="language-python"><span class="code-word">import</span> os' in text
    assert "import &lt;os&gt;" in text
