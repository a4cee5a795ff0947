"""What an operator may use: the licence policy, contracts, and servers and plans of the operator's own."""

from dataclasses import replace

import pytest

from tests.calls.parts import number_source
from toolserver.upstream.rights import BARRED, EVERYTHING, Rights, UnknownSource
from toolserver.upstream.source import Get, KeyTerms, Licence, SourceExcluded

PUBLIC, OWN = Get("https://public.example/"), Get("https://own.example/", under="OWN_URL")
FREE_OF_TERMS = Licence("yes", "Someone")


def source_with(kind, **terms):
    return replace(number_source(), name="Someone.numbers", licence=Licence(kind, "Someone"), terms=terms)


def with_own_server(*, alone):
    return source_with("unclear", OWN_URL=KeyTerms(FREE_OF_TERMS, alone))


def test_the_licence_block_names_class_and_attribution_and_the_terms_if_they_are_known():
    bare = source_with("unclear")
    full = replace(bare, licence=Licence("attribution", "Someone", "https://test.example/terms"))
    assert EVERYTHING.describe(bare) == {"class": "unclear", "attribution": "Someone"}
    assert EVERYTHING.describe(full) == {
        "class": "attribution",
        "attribution": "Someone",
        "terms_url": "https://test.example/terms",
    }


def test_each_policy_bars_its_classes_and_no_others():
    kinds = {"yes", "attribution", "non_commercial", "unclear", "no"}
    for policy, barred in BARRED.items():
        assert {kind for kind in kinds if Rights(policy).bars(source_with(kind))} == barred


@pytest.mark.parametrize("party", ["Someone", "Someone.numbers"])
def test_a_contract_with_a_publisher_or_about_a_source_readmits_it_and_is_public(party):
    rights, barred = Rights("commercial", ((party, "resale over the API"),)), source_with("no")
    assert rights.select(barred, [PUBLIC]) == [PUBLIC]
    assert not rights.bars(barred)
    assert rights.describe(barred) == {"class": "contract", "attribution": "Someone", "contract": "resale over the API"}
    for name in ("Someone.letters", "Someones.numbers"):
        other = replace(barred, name=name)
        assert rights.bars(other) is (party != "Someone" or name == "Someones.numbers")


def test_where_public_hosts_are_barred_only_the_own_server_is_asked_and_elsewhere_both():
    source, keys = with_own_server(alone=False), frozenset({"OWN_URL"})
    assert Rights("any", keys=keys).select(source, [OWN, PUBLIC]) == [OWN, PUBLIC]
    assert Rights("any", keys=keys).licence_of(source) == source.licence
    assert Rights("commercial", keys=keys).select(source, [OWN, PUBLIC]) == [OWN]
    assert Rights("commercial", keys=keys).licence_of(source) == FREE_OF_TERMS
    assert Rights("commercial").bars(source)
    with pytest.raises(SourceExcluded):
        Rights("commercial", keys=keys).select(source, [PUBLIC])


def test_a_plan_that_replaces_the_public_host_changes_the_class_under_every_policy():
    for policy in BARRED:
        assert Rights(policy, keys=frozenset({"OWN_URL"})).licence_of(with_own_server(alone=True)) == FREE_OF_TERMS


def test_a_contract_about_nothing_is_refused_with_the_nearest_name():
    Rights(contracts=(("CoinGecko", "…"), ("Kraken.ohlc", "…"))).check_names(["CoinGecko.markets", "Kraken.ohlc"])
    for party, said in (
        ("CoinGeko", "did you mean CoinGecko?"),
        ("Kraken.ohcl", "did you mean Kraken.ohlc"),
        ("zzz", "lists all"),
    ):
        with pytest.raises(UnknownSource, match=said.replace("?", r"\?")):
            Rights(contracts=((party, "…"),)).check_names(["CoinGecko.markets", "Kraken.ohlc"])


def test_answers_made_under_other_rights_have_another_fingerprint():
    several = [Rights(), Rights("commercial"), Rights(contracts=(("A", "b"),)), Rights(keys=frozenset({"A_KEY"}))]
    assert len({rights.fingerprint for rights in several}) == len(several)
