"""Real hosts of models, each with a home of its own: configured, asked in sentences, answered in texts.

A host gets no variable of whoever runs the tests, and a proxy on this machine that lets nothing through, so that it
reaches the model and the server here and nothing else. What it may do without asking is set in its own configuration,
as a person would set it, and kept in `approvals`.
"""

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hosts.model_server import ModelServer
from tests.hosts.terminal import end_daemons, run_in_terminal
from tests.live.processes import ROOT
from tests.live.programs import NODE

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
PYTHON = HERE / ".venv-agents" / "bin" / "python"
SERVER = "toolserver"
LONGEST_S = 300.0
BROWSER = "bin/xdg-open"
MAY_SPEND = 20  # credits: what a person allows a host that signs in
KEY = "sk-ant-none"
OPENED = "opened"  # the file in a host's home where its browser writes the addresses that it was sent to


@dataclass(frozen=True)
class Door:
    """How a host reaches the server: an address, or a command that it starts."""

    transport: str  # "http", "bridge" or "oauth"
    url: str = ""
    command: tuple[str, ...] = ()
    token: str = ""  # what the person pastes on the page of consent


class HostFailed(Exception):
    """A host ended with an error, or said nothing in time."""


class Host(ABC):
    """One host and one conversation."""

    name: str
    program: Path
    of_server: tuple[str, ...] = ("",)
    """How the names (or namespaces) of the server's tools begin, by which its model tells them from the host's own."""
    approvals: str = "none: it has no approvals"
    defers = False
    """Whether its model searches for tools: then every tool is listed to it."""

    def __init__(self, folder: Path, model: ModelServer, door: Door) -> None:
        self.home, self.model, self.door = folder / "home", model, door
        self.work = self.home / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.errors = ""
        self.write_browser()
        self.configure()
        if door.transport == "oauth":
            self.sign_in()

    @abstractmethod
    def configure(self) -> None:
        """Write the configuration of the host."""

    @abstractmethod
    def sign_in(self) -> None:
        """Sign in at the server as a person does in this host, before the first sentence."""

    @abstractmethod
    def say(self, sentence: str) -> str:
        """Return what the host answers to a sentence of the user. Raises HostFailed."""

    @abstractmethod
    def close(self) -> None:
        """End what still runs."""

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the host."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:{NODE.parent}:/usr/bin:/bin",
            "BROWSER": str(self.home / BROWSER),
            "TMPDIR": str(self.home),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
            "HTTP_PROXY": self.model.url,
            "HTTPS_PROXY": self.model.url,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def write_browser(self) -> None:
        """Put a browser in the way of the host: a person who says yes to it sits there."""
        python = f"TOKEN={self.door.token} CREDITS={MAY_SPEND} exec {sys.executable} -m tests.hosts.browser"
        note = f'echo "$1" >>"{self.home / OPENED}"'
        self.write(BROWSER, f'#!/bin/sh\n{note}\ncd {ROOT} && {python} "$1" 2>"{self.home}/browser-errors"\n')
        (self.home / BROWSER).chmod(0o755)

    def read_opened(self) -> list[str]:
        """Return the addresses that the host has opened."""
        file = self.home / OPENED
        return file.read_text().split() if file.exists() else []

    def write(self, path: str, text: str) -> None:
        """Write a file in the home of the host."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class CommandLineHost(Host):
    """A host that is a program: each sentence is a process that continues the conversation."""

    begun = False

    @abstractmethod
    def words(self, sentence: str) -> list[str]:
        """Return the arguments of the program for a sentence; `begun` says whether it is not the first."""

    def say(self, sentence: str) -> str:
        answer = self.run(*self.words(sentence))
        self.begun = True
        return answer

    def close(self) -> None:
        """No process is left between two sentences, but what a host in a terminal keeps running for the next one."""
        end_daemons(self.home)

    def run(self, *words: str, within_s: float = LONGEST_S, **more: str) -> str:
        """Run the program of the host until it ends, and return what it wrote to stdout. Raises HostFailed."""
        environment = self.environment() | more
        try:
            done = subprocess.run(
                [str(self.program), *words],
                env=environment, cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=within_s, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            raise HostFailed(f"{self.name} said nothing within {within_s:.0f} s: {late.stderr!r}") from late
        self.errors += done.stderr
        if done.returncode != 0:
            raise HostFailed(f"{self.name} ended with {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}")
        return done.stdout.strip()

    def run_in_terminal(self, *words: str, answers: Mapping[str, str] | None = None) -> str:
        """Run the program in a terminal, where a person answers it, and return all it wrote. Raises HostFailed."""
        command = [str(self.program), *words]
        status, output = run_in_terminal(
            command,
            env=self.environment() | {"TERM": "xterm-256color"},
            cwd=self.work,
            answers=answers or {},
            within_s=LONGEST_S,
        )
        if status != 0:
            browser = self.home / "browser-errors"
            errors = browser.read_text()[-800:] if browser.exists() else ""
            raise HostFailed(f"{self.name} ended with {status}: {output[-1200:]}{errors}")
        return output


class ClaudeCode(CommandLineHost):
    name = "Claude Code"
    program = MODULES / ".bin" / "claude"
    of_server = (f"mcp__{SERVER}__",)
    approvals = f"settings.json: permissions.allow mcp__{SERVER}, ToolSearch"
    defers = True

    def sign_in(self) -> None:
        self.run_in_terminal("mcp", "login", SERVER)

    def configure(self) -> None:
        allowed = {"permissions": {"allow": [f"mcp__{SERVER}", "ToolSearch"]}}
        self.write(".claude/settings.json", json.dumps(allowed))
        entry: dict[str, Any] = {"type": "http", "url": self.door.url}
        if self.door.command:
            entry = {"type": "stdio", "command": self.door.command[0], "args": list(self.door.command[1:])}
        trusted = {"projects": {str(self.work): {"hasTrustDialogAccepted": True}}}
        trusted |= {"customApiKeyResponses": {"approved": [KEY]}}
        servers = {"mcpServers": {SERVER: entry}, "hasCompletedOnboarding": True, **trusted}
        self.write(".claude.json", json.dumps(servers))

    def environment(self) -> dict[str, str]:
        """It defers tools only towards its own provider's address, unless it is told to: so people have it."""
        return super().environment() | {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": KEY,
            "ENABLE_TOOL_SEARCH": "true",
            "IS_SANDBOX": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def words(self, sentence: str) -> list[str]:
        return ["-p", sentence, *(["--continue"] if self.begun else [])]


class Codex(CommandLineHost):
    name = "Codex CLI"
    program = MODULES / ".bin" / "codex"
    of_server = (f"mcp__{SERVER}",)
    approvals = 'config.toml: default_tools_approval_mode = "approve"'
    defers = True

    def sign_in(self) -> None:
        self.run("mcp", "login", SERVER)

    def configure(self) -> None:
        """It waits for a server only if that is required; our model answers before a command has started."""
        entry = f"url = {json.dumps(self.door.url)}"
        if self.door.command:
            entry = f"command = {json.dumps(self.door.command[0])}\nargs = {json.dumps(list(self.door.command[1:]))}"
        self.write(
            ".codex/config.toml",
            f"""\
model = "gpt-5.5"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.local]
name = "local"
base_url = "{self.model.url}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"

[mcp_servers.{SERVER}]
{entry}
required = true
default_tools_approval_mode = "approve"

[projects.{json.dumps(str(self.work))}]
trust_level = "trusted"
""",
        )

    def environment(self) -> dict[str, str]:
        return super().environment() | {"MODEL_KEY": "none"}

    def words(self, sentence: str) -> list[str]:
        return ["exec", "--skip-git-repo-check", *(["resume", "--last"] if self.begun else []), sentence]


class GeminiCli(CommandLineHost):
    name = "Gemini CLI"
    program = MODULES / ".bin" / "gemini"
    of_server = (f"mcp_{SERVER}_",)
    approvals = "settings.json: mcpServers.toolserver.trust true"

    def sign_in(self) -> None:
        """It signs in when it first connects, and asks before it opens the browser."""
        self.run_in_terminal(*self.words("Hello."), answers={"[Y/n]": "y\r"})

    def configure(self) -> None:
        entry: dict[str, Any] = {"httpUrl": self.door.url}
        if self.door.command:
            entry = {"command": self.door.command[0], "args": list(self.door.command[1:])}
        if self.door.transport == "oauth":
            entry["oauth"] = {"enabled": True}
        settings = {
            "mcpServers": {SERVER: entry | {"trust": True}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        }
        self.write(".gemini/settings.json", json.dumps(settings))

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def words(self, sentence: str) -> list[str]:
        resumed = ["--resume", "latest"] if self.begun else []
        return ["-p", sentence, "--skip-trust", "-m", "gemini-2.5-pro", *resumed]


class PythonAgent(Host):
    """An agent of a few lines on a library: `agents/*.py` reads a sentence a line, and answers with a line of JSON."""

    script: str
    program = PYTHON

    def sign_in(self) -> None:
        """It has begun to: the script signs in when it connects."""

    def configure(self) -> None:
        door = {"url": self.door.url, "command": list(self.door.command), "transport": self.door.transport}
        with (self.home / "errors").open("w") as errors:
            self._process = subprocess.Popen(
                [str(PYTHON), str(HERE / "agents" / self.script), json.dumps(door)],
                env=self.environment(), cwd=self.work, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            "OPENAI_BASE_URL": f"{self.model.url}/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
        }

    def say(self, sentence: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(sentence) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        self.errors = (self.home / "errors").read_text()
        if not line:
            raise HostFailed(f"{self.name} has ended: {self.errors[-1500:]}")
        return str(json.loads(line))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class OpenAIAgents(PythonAgent):
    name = "openai-agents"
    script = "openai_agents.py"
    approvals = 'the library\'s default: require_approval="never"'


class LangChain(PythonAgent):
    name = "LangChain"
    script = "langchain_agent.py"


HOSTS: tuple[type[Host], ...] = (ClaudeCode, Codex, GeminiCli, OpenAIAgents, LangChain)
