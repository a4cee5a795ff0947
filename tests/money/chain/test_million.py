"""The small form of the command that reads a million transfers."""

from tests.money.chain.million import measure


async def test_every_transfer_of_a_small_million_is_read_and_adds_up(tmp_path):
    figures = await measure(tmp_path, transfers=6_000, count=2_500, blocks=25_000)
    assert (figures["transfers"], figures["differences"]) == (6_000, 0)
    assert figures["rows"] == 6_000 - figures["dust"][1] - figures["dust"][3]
