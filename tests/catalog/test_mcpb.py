"""The MCP bundle: what is in it, and what it starts."""

import io
import json
import tomllib
import zipfile

from catalog.mcpb import make_manifest, write_bundle, write_project
from tests.catalog.tiny import TINY
from tests.served import all_tools


def test_it_holds_the_program_and_no_picture_and_the_same_content_makes_the_same_bytes():
    written = write_bundle(TINY, "https://data.example", changes="# Changelog")
    bundle = zipfile.ZipFile(io.BytesIO(written))
    names = bundle.namelist()
    assert {"manifest.json", "pyproject.toml", "server/main.py", "server/toolserver/app.py"} < set(names)
    assert {"server/tools/free/gas.py", "server/rest_bridge/pages/home.html", "server/catalog/mcpb.py"} < set(names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".png", ".pyc", ".jpg"))]
    assert bundle.read("server/toolserver/CHANGELOG.md") == b"# Changelog"
    assert written == write_bundle(TINY, "https://data.example", changes="# Changelog")
    assert json.loads(bundle.read("manifest.json")) == make_manifest(TINY, "https://data.example")
    compile(bundle.read("server/main.py"), "main.py", "exec")


def test_with_a_service_it_is_a_bridge_that_takes_a_token_and_without_one_it_has_the_free_tools():
    bridge, alone = make_manifest(all_tools(), "https://data.example"), make_manifest(all_tools(), None)
    assert bridge["server"]["mcp_config"]["args"][-3:] == ["stdio", "--server", "https://data.example"]
    assert bridge["server"]["mcp_config"]["env"] == {"TOOLSERVER_TOKEN": "${user_config.token}"}
    assert bridge["user_config"]["token"]["sensitive"] is True
    assert len(bridge["tools"]) == 21
    assert alone["server"]["mcp_config"]["args"][-1] == "stdio"
    assert "user_config" not in alone
    assert {tool["name"] for tool in alone["tools"]} == {
        o.name for o in all_tools() if o.tier == "free" and o.toolset == "core"
    }


def test_the_host_installs_what_the_program_requires_and_no_extras():
    text = write_project(["httpx[http2]>=0.28", 'uvloop>=0.22; sys_platform != "win32" and extra == "fast"'])
    project = tomllib.loads(text)
    assert project["project"]["dependencies"] == ["httpx[http2]>=0.28"]
    assert project["tool"]["uv"] == {"package": False}
