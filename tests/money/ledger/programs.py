"""Verifiers that are not ours: node's crypto, the openssl command line."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: what stands before an Ed25519 key in DER

NODE_VERIFIES = """
const crypto = require("node:crypto");
const { jwk, jws } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const [head, payload, signature] = jws.split(".");
const key = crypto.createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x }, format: "jwk" });
const good = crypto.verify(null, Buffer.from(head + "." + payload), key, Buffer.from(signature, "base64url"));
const core = JSON.parse(Buffer.from(payload, "base64url"));
const sorted = (value) => value === null || typeof value !== "object" ? value
  : Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
const canonical = JSON.stringify(sorted(core)) === Buffer.from(payload, "base64url").toString();
console.log(JSON.stringify({ good, canonical, core }));
"""


def missing(what: str) -> NoReturn:
    """Skip, or fail where everything is required."""
    if os.environ.get("REQUIRE") == "all":
        pytest.fail(f"{what} is missing, and REQUIRE=all", pytrace=False)
    pytest.skip(f"{what} is not on this machine")


def program(name: str) -> str:
    return shutil.which(name) or missing(name)


def node(jwk: dict[str, Any], jws: str) -> dict[str, Any]:
    """What node's own crypto says of a receipt, and what it reads in it."""
    given = json.dumps({"jwk": jwk, "jws": jws})
    done = subprocess.run(
        [program("node"), "-e", NODE_VERIFIES], input=given, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def openssl_verifies(public: bytes, message: bytes, signature: bytes, folder: Path) -> bool:
    """Whether `openssl pkeyutl` takes the signature."""
    for name, content in (("key.der", SPKI + public), ("message", message), ("signature", signature)):
        (folder / name).write_bytes(content)
    command = [program("openssl"), "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-rawin"]
    done = subprocess.run(
        [*command, "-in", "message", "-sigfile", "signature"], cwd=folder, capture_output=True, timeout=30
    )
    return done.returncode == 0
