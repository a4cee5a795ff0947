"""The log of uncharged calls, read over HTTP and judged by a verifier that others wrote (C2SP tlog-tiles)."""

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.calls.shop import Shop, shop
from tests.live.programs import CLIENTS, installed
from tests.requirements import proves
from toolserver.money.receipts.log import UnchargedCall
from toolserver.money.receipts.service import LOG_PATH
from toolserver.money.receipts.sql_store import SqlReceiptStore

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

PYTHON = CLIENTS / ".venv-tlog" / "bin" / "python"
FIRST, SECOND = 300, 700  # more than a full tile, and a log that has grown


class Mirror:
    """A copy of the log's public files in a folder, and the verifier that looks at it."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.seller, self.folder = shop, folder
        self.key = shop.evidence.log.verifier

    async def fetch(self) -> str:
        """Everything a mirror would copy, as the tile addresses of the standard say; the checkpoint."""
        note = await self._file("checkpoint")
        size = int(note.decode().splitlines()[1])
        level, count = 0, size
        while count:
            await self._tiles(f"tile/{level}", count)
            level, count = level + 1, count // 256
        await self._tiles("tile/entries", size)
        return note.decode()

    async def _tiles(self, under: str, count: int) -> None:
        for number in range(-(-count // 256)):
            width = min(256, count - 256 * number)
            await self._file(f"{under}/{number:03}" + ("" if width == 256 else f".p/{width}"))

    async def _file(self, name: str) -> bytes:
        answer = await self.seller.rest.get(f"{LOG_PATH}/{name}")
        assert answer.status_code == 200, name
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(answer.content)
        return answer.content

    def verified(self, verb: str, *more: Any) -> dict[str, Any]:
        """What the verifier says: `ok`, and if not, why not."""
        flags = [verb, "--tiles", str(self.folder), "--log-key", self.key, *map(str, more)]
        done = subprocess.run([PYTHON, "-m", "aics_tlog", *flags], capture_output=True, text=True, check=False)
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["ok"] is (done.returncode == 0)
        return found


@pytest.fixture
async def mirror(tmp_path: Path) -> AsyncIterator[Mirror]:
    installed(PYTHON)
    async with shop(tmp_path / "shop") as s:
        await grow(s, FIRST)
        yield Mirror(s, tmp_path / "mirror")


async def grow(s: Shop, to: int) -> None:
    """Calls of as many tokens that were not charged, until there are so many leaves; the log is signed anew."""
    size = (await SqlReceiptStore(s.file).head()).size
    for number in range(size, to):
        call = UnchargedCall(s.clock.time(), f"{number:064x}", "stale_data", f"/api/pro/{number}", 2, "0" * 64)
        await s.evidence.log.record(call)
    await s.close_hour()


@proves("log.verified-by-others")
async def test_others_find_the_log_in_order_and_every_entry_in_it(mirror: Mirror, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text(await mirror.fetch())
    leaf = tmp_path / "leaf"
    for index in (0, 255, 256, FIRST - 1):
        found = mirror.verified("verify-inclusion", "--index", index, "--entry-out", leaf)
        assert found["ok"], found
        assert json.loads(leaf.read_text())["seq"] == index

    await grow(mirror.seller, SECOND)
    await mirror.fetch()
    grown = mirror.verified("verify-consistency", "--old-checkpoint", old)
    assert grown["ok"], grown


@pytest.mark.parametrize("name", ["checkpoint", "tile/0/000", "tile/entries/000"])
async def test_others_see_a_single_changed_byte(mirror: Mirror, name: str) -> None:
    await mirror.fetch()
    path = mirror.folder / name
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)

    assert not mirror.verified("verify-inclusion", "--index", 100)["ok"]
