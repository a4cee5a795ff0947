"""The TypeScript client: its types are strict, and what is compiled from it calls a real server."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.processes import ROOT, UNLIMITED, Program, started
from tests.live.programs import CLIENTS, NODE, installed

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

TSC = CLIENTS / "node_modules" / ".bin" / "tsc"
WRONG = """
import { ToolClient } from "./client.ts";
const client = new ToolClient("https://data.example");
await client.call("weather", { place: 7 });
await client.call("weather", { town: "Paris" });
await client.call("wether");
await client.call("payment_confirm");
const answer = await client.call("gas");
answer.payload.data.unknown;
"""
PROBE = """
import { ToolClient, ToolError } from "./client.js";
const [address, token] = process.argv.slice(2);
const calls = [];
const flaky = async (url, init) => {
  calls.push([init.method, new URL(url).pathname, init.headers?.["idempotency-key"], init.headers?.authorization]);
  if (calls.length === 2) throw new TypeError("lost on the way");
  return fetch(url, init);
};
const client = new ToolClient(address + "/api/mcp", { token, fetch: flaky });
const first = await client.call("premium_briefing", {}, "one");
const again = await client.call("premium_briefing", {}, "one");
const made = await client.call("allowance_create", { name: "ts", credits: 5, tools: ["premium_macro"] });
const ended = await client.call("allowance_revoke", { id: made.payload.id });
const digest = Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(first.body))).toString("hex");
const checked = await client.call("receipt_verify", { receipt: first.receipt, body_sha256: digest });
const refused = await client.call("weather", { lat: 1 }).catch((error) => error);
let insecure = "";
try { new ToolClient("http://data.example", { token }); } catch (error) { insecure = error.message; }
console.log(JSON.stringify({
  calls: calls.slice(0, 3), same: first.body === again.body,
  credits: again.creditsRemaining, state: ended.payload.state,
  valid: checked.payload.valid, body: checked.payload.checks.body,
  refused: [refused instanceof ToolError, refused.code, refused.status], insecure,
}));
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, so that nothing is written into the checkout."""
    installed(TSC)
    return Path(shutil.copytree(ROOT / "clients" / "typescript", tmp_path / "package"))


HOSTILE = """
import { ToolClient } from "./client.js";
const seen = [], route = { method: "GET", path: ".evil.example/x", auth: "bearer", arguments: {} };
const answers = ["{}", "[]", "<p>", "[".repeat(100000), JSON.stringify({ routes: { gas: route } })];
for (const text of answers) {
  const fetch = async (url) => (seen.push(new URL(url).hostname), new Response(text));
  const client = new ToolClient("https://data.example", { token: "t", retries: 0, fetch });
  await client.call("gas").catch((error) => console.log(error.name));
}
console.log([...new Set(seen)].join());
"""


def compile_package(package: Path, *files: str) -> list[str]:
    """Compile the client and more files. Returns the complaints."""
    config = package / "tsconfig.json"
    listed = ", ".join(f'"{name}"' for name in ("client.ts", "tools.ts", "example.ts", *files))
    config.write_text(config.read_text().replace('"client.ts", "tools.ts", "example.ts"', listed))
    done = subprocess.run([TSC, "-p", package], capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if "error TS" in line]


def test_it_compiles_strictly_and_wrong_calls_do_not(package: Path) -> None:
    assert compile_package(package) == []
    (package / "wrong.ts").write_text(WRONG)
    lines = [complaint.partition("(")[2].partition(",")[0] for complaint in compile_package(package, "wrong.ts")]
    assert lines == ["4", "5", "6", "7", "9"] or lines == ["4", "5", "6", "7", "9", "9"]


def test_what_is_compiled_calls_a_server(package: Path, program: Program) -> None:
    installed(NODE)
    assert compile_package(package) == []
    (package / "dist" / "probe.js").write_text(PROBE)

    def run(script: str) -> str:
        words = [NODE, package / "dist" / script, program.url, program.ready["token"]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    found = json.loads(run("probe.js"))
    paid = ["GET", "/api/pro/briefing", "one", f"Bearer {program.ready['token']}"]
    assert found["calls"][1:] == [paid, paid]  # lost once, and sent again with the same key
    assert found["calls"][0][1] == "/api/llm-tools"
    assert (found["same"], found["state"], found["valid"], found["body"]) == (True, "revoked", True, True)
    assert found["credits"] == program.ready["credits"] - 1
    assert found["refused"] == [True, "invalid_arguments", 400]
    assert "https" in found["insecure"]
    (package / "dist" / "hostile.js").write_text(HOSTILE)
    assert run("hostile.js").splitlines() == [*["NotFromService"] * 5, "data.example"]
    lines = run("example.js").splitlines()
    assert lines[1:] == [f"{program.ready['credits'] - 2} true", "not_found 404"]


def test_the_commands_of_its_readme_build_it_and_its_example_runs_with_and_without_a_token(
    package: Path, program: Program
) -> None:
    installed(NODE)
    [block] = re.findall(r"^```sh\n(.*?)^```", (package / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    install, *commands = block.splitlines()
    assert install.startswith("npm install ")
    assert "typescript" in json.loads((package / "package.json").read_text())["devDependencies"]
    (package / "node_modules").symlink_to(CLIENTS / "node_modules")  # what that command would download
    script = "\n".join(commands).replace("http://127.0.0.1:8080", program.url)

    def paste(token: str) -> list[str]:
        environment = os.environ | {"TOKEN": token, "PATH": f"{NODE.parent}:{os.environ['PATH']}"}
        words = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            words, cwd=package, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if line and not line.startswith(">")]

    weather, refusal = paste("")
    assert re.fullmatch(r"-?[\d.]+ false", weather)
    assert refusal == "not_found 404"
    assert len(paste(program.ready["token"])) == 3
