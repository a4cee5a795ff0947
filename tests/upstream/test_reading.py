"""The licence block of a source."""

from dataclasses import replace

from tests.calls.parts import number_source
from toolserver.upstream.reading import CallReader, describe
from toolserver.upstream.source import Licence


def test_the_licence_block_names_class_and_attribution_and_the_terms_if_they_are_known():
    bare = replace(number_source(), licence=Licence("unclear", "Someone"))
    full = replace(number_source(), licence=Licence("attribution", "Someone", "https://test.example/terms"))
    assert describe(bare) == {"class": "unclear", "attribution": "Someone"}
    assert describe(full) == {
        "class": "attribution",
        "attribution": "Someone",
        "terms_url": "https://test.example/terms",
    }


class Recorder:
    """A reader that notes how it was asked."""

    async def fresh(self, source, query, **how):
        return how

    async def kept(self, source, query):
        return "kept"


async def test_a_call_says_in_each_read_whether_its_arguments_were_chosen_and_whether_it_can_wait():
    reader = CallReader(Recorder(), is_chosen=True, is_patient=False)
    assert await reader.fresh(None, None, sla_s=5) == {"sla_s": 5, "is_chosen": True, "is_patient": False}
    assert await reader.kept(None, None) == "kept"
