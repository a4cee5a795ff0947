"""Give tests, and the programs that they start, surroundings without a person's keys, settings or home."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|COMSPEC|PATHEXT|VIRTUAL_ENV|"
    r"PYTHON.*|PYTEST_.*|HYPOTHESIS_.*|COVERAGE_.*|"
    r"REQUIRE|LONG|SEED|WORKERS|CI|CPU|OUTCOMES|UPDATE_CONTRACTS|UPDATE_DOCUMENTS|HTTP_LIBRARY|ANVIL|FAULTS|TEST_DATABASE_URL|PGBOUNCER|"
    r"SAMPLES|HOSTS|CONVERSATIONS|REHEARSAL|KEYS_IN_SIGHT"
)
"""What a test run may need. Everything else, a key above all, stays out: what is not named cannot be forgotten."""


def clean_surroundings(home: Path | str, surroundings: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that a program may see, with a home of its own."""
    kept = {name: value for name, value in surroundings.items() if KEPT.fullmatch(name)}
    home = str(home)
    return kept | {"HOME": home, "USERPROFILE": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"}


MODEL_KEY = re.compile(
    r"(ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE|VERTEX|AZURE|AWS|MISTRAL|OPENROUTER|XAI|GROQ)_(.*_)?"
    r"(KEY|TOKEN|CREDENTIALS|ACCESS_KEY_ID)"
)
SEEN = "KEYS_IN_SIGHT"


def name_keys_in_sight(surroundings: Mapping[str, str] = os.environ) -> str:
    """Return the names of the variables with a key of a model's provider, never a value, separated by spaces.

    A process that was started by one with such a key finds the names in a variable.
    """
    names = {name for name, value in surroundings.items() if value and MODEL_KEY.fullmatch(name)}
    return " ".join(sorted(names | set(surroundings.get(SEEN, "").split())))
