"""Names of companies and their tickers."""

from tools.shared.companies import COMPANIES, OTHERS, UnknownCompany, find_similar, find_symbol, show_company


def test_every_name_leads_to_its_ticker_and_every_ticker_to_itself():
    for symbol, names in COMPANIES.items():
        assert {find_symbol(name) for name in names if name not in (*OTHERS, *COMPANIES)} <= {symbol}, symbol
        assert find_symbol(symbol) == find_symbol(f" {symbol} ") == symbol
        assert show_company(names[0]) == f"{names[0]} ({symbol})"


def test_case_punctuation_and_legal_forms_do_not_matter():
    meant = {
        "NVDA": ("nvda", "NVIDIA", "Nvidia Corp."),
        "BRK.B": ("berkshire hathaway inc", "brk.b"),
        "DIS": ("The Walt Disney Company", "disney"),
        "LEVI": ("Levi’s", "levis", "Levi Strauss & Co."),
        "TMUS": ("T-Mobile", "t mobile"),
        "KO": ("coke", "Coca-Cola"),
        "HPQ": ("hp", "Hewlett Packard"),
        "F": ("FORD", "Ford Motor Company"),
    }
    for symbol, texts in meant.items():
        assert {find_symbol(text) for text in texts} == {symbol}


def test_a_ticker_in_capitals_is_that_ticker_and_one_of_a_company_that_is_not_listed_too():
    assert [find_symbol(text) for text in ("COKE", "HP", "NOPE", "sndl", "BTC-USD")] == [
        "COKE", "HP", "NOPE", "SNDL", "BTC-USD",
    ]  # fmt: skip


def test_similar_names_are_those_with_the_words_and_then_those_spelled_alike():
    assert find_symbol("general") == UnknownCompany(
        "general", ["Dollar General", "General Dynamics", "GE Aerospace", "General Mills", "General Motors"]
    )
    assert find_similar("Starbuks") == ["Starbucks"]
    assert find_similar("") == find_similar("!?") == []
