"""`toolserver mcpb` and `toolserver server-json`."""

import json
import zipfile

from click.testing import CliRunner

from toolserver.cli.publish import mcpb, server_json


def test_a_bundle_is_written_for_a_service_or_for_none(tmp_path):
    for words in ([], ["--server", "https://data.example/api/mcp"]):
        done = CliRunner().invoke(mcpb, [str(tmp_path / "a.mcpb"), *words])
        assert done.exit_code == 0, done.output
        manifest = json.loads(zipfile.ZipFile(tmp_path / "a.mcpb").read("manifest.json"))
        assert ("https://data.example" in manifest["server"]["mcp_config"]["args"]) is bool(words)
    assert CliRunner().invoke(mcpb, [str(tmp_path / "b.mcpb"), "--server", "http://data.example"]).exit_code == 1
    assert not (tmp_path / "b.mcpb").exists()


def test_server_json_is_printed_for_an_address():
    done = CliRunner().invoke(server_json, ["--base-url", "https://data.example", "--name", "io.github.me/data"])
    document = json.loads(done.stdout)
    assert (document["name"], document["remotes"][0]["url"]) == ("io.github.me/data", "https://data.example/api/mcp")
    assert "packages" not in document
    refused = CliRunner().invoke(server_json, ["--base-url", "data.example"])
    assert (refused.exit_code, "--base-url" in refused.output) == (1, True)
