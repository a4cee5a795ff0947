"""The types of the TypeScript client."""

from catalog.typescript_types import write_module
from tests.architecture.code import ROOT
from tests.catalog.tiny import TINY
from tests.served import all_tools


def test_the_file_in_the_checkout_is_what_the_registry_says():
    written = (ROOT / "clients" / "typescript" / "tools.ts").read_text(encoding="utf-8")
    assert written == write_module(all_tools()), "`toolserver docs` brings it up to date"


def test_each_tool_has_its_arguments_and_its_payload():
    text = write_module(TINY)
    wanted = (
        'sights: { arguments: { /** Latitude */ lat: number; kind?: "tower" | "bridge" | null; period?: "24h" | null;'
        ' /** Only these */ names?: Array<"a" | "b"> | null; }; payload: SightsPayload };'
    )
    assert wanted in text
    assert "digest: { arguments: Record<string, never>; payload: DigestPayload };" in text
    assert "  warning?: Array<Warning>;" in text.replace("/** What is missing or old */ ", "")


def test_no_description_ends_its_comment():
    text = write_module(all_tools())
    assert text.count("/**") == text.count("*/")
