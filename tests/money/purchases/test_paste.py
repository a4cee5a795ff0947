"""The purchase that the demo offers to paste, pasted: in a plain shell, into the real program."""

import json
import re
import subprocess

import pytest

from tests.live.processes import control, environment, ran, started
from tests.money.purchases.wallet import address
from toolserver.core.caller import well_formed
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.demo import paste_sequence

pytestmark = pytest.mark.live


def pasted(text: str) -> "subprocess.CompletedProcess[str]":
    """What a shell makes of it, as typed on its standard input."""
    return subprocess.run(
        ["sh", "-u"], input=text, capture_output=True, text=True, timeout=30, env=environment({}), check=False
    )


def test_pasting_the_sequence_buys_credits(tmp_path):
    with started("demo", folder=tmp_path) as program, control(program.ready["world_url"]) as sim:
        sim.put("clock", {"speed": 30})  # three blocks are six seconds
        done = pasted(paste_sequence(program.url, program.ready["world_url"]))

        assert (done.returncode, done.stderr) == (0, "")
        told, balance = done.stdout.splitlines()
        found = re.fullmatch(r"paid 5 USDC to (0x\w{40}) in (0x\w{64}); the token: (\w+)", told)
        assert found, told
        assert found[1] == checksum_address(address(0))
        assert well_formed(found[3])
        assert json.loads(balance)["credits"] == 250
        listed = ran("purchases", "--json", "--data-dir", str(tmp_path / "data"), folder=tmp_path)
        (purchase,) = json.loads(listed.stdout)
        assert (purchase["state"], purchase["credits"], purchase["tx"]) == ("credited", 250, found[2])
        assert found[3] not in program.said + listed.stdout.decode()


def test_a_shell_shows_what_was_refused():
    """Nobody listens: no credits, and the reason on the screen."""
    done = pasted(paste_sequence("http://127.0.0.1:9", "http://127.0.0.1:9"))

    assert "curl: (7)" in done.stderr
    assert "svc_live_" not in done.stdout
