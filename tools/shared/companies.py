"""Find the ticker of a company or index by the name that people use for it, among large ones traded in the U.S.

Names and tickers are facts, written down here. A ticker changes now and then; the answer's
`name`, which the provider of the quote gives, says whose it is.
"""

import difflib
import re
from functools import cache
from typing import NamedTuple

SIMILAR = 5
_LEGAL = {
    "and",
    "inc",
    "corp",
    "corporation",
    "co",
    "company",
    "companies",
    "plc",
    "ltd",
    "limited",
    "group",
    "holdings",
}
_TICKER = re.compile(r"[A-Z]{1,5}|(?=.*[0-9.\-])[A-Z][A-Z0-9.\-]{0,9}")


class UnknownCompany(NamedTuple):
    """A text that is no ticker and no name of the list. `similar` are names that can be sent instead."""

    text: str
    similar: list[str]


def find_symbol(text: str) -> str | UnknownCompany:
    """Return the ticker that a text means: the name of a company, or a ticker in any case.

    A ticker in capitals is that ticker, even if people call another company so (COKE, HP).
    """
    names, upper = _symbols_by_name(), text.strip().upper()
    symbol = names.get(_plain(text))
    if text.strip() == upper and (upper in COMPANIES or upper in OTHERS):
        return upper
    if symbol is not None:
        return symbol
    if upper in COMPANIES or (_TICKER.fullmatch(upper) and len(_find_by_word(text)) < 2):
        return upper
    return UnknownCompany(text.strip(), find_similar(text))


def find_name(symbol: str) -> str | None:
    """Return the usual name of a company or index of the list, or None for another ticker."""
    names = COMPANIES.get(symbol)
    return names[0] if names else None


def find_similar(text: str) -> list[str]:
    """Return up to five names of companies that a text may mean: those with its words, then those spelled alike."""
    by_word = _find_by_word(text)
    plain = _plain(text)
    alike = difflib.get_close_matches(plain, _symbols_by_name(), SIMILAR, 0.7)
    symbols = dict.fromkeys([*by_word, *(_symbols_by_name()[name] for name in alike)])
    return [COMPANIES[symbol][0] for symbol in symbols][:SIMILAR]


def show_company(name: str) -> str:
    """Return a name of the list with its ticker, such as `Apple (AAPL)`."""
    return f"{name} ({_symbols_by_name()[_plain(name)]})"


def _find_by_word(text: str) -> list[str]:
    """Return the tickers of the companies that have all words of a text in one of their names."""
    words = set(_plain(text).split())
    return [
        symbol
        for symbol, names in COMPANIES.items()
        if words and any(words <= set(_plain(name).split()) for name in names)
    ]


def _plain(name: str) -> str:
    """Return a name without case, punctuation, `the` and the words for legal forms at its end."""
    words = re.sub(r"[^\w\s]", "", name.casefold().replace("-", " ").replace("&", " and ")).split()
    if words[:1] == ["the"]:
        words = words[1:]
    while len(words) > 1 and words[-1] in _LEGAL:
        words = words[:-1]
    return " ".join(words)


@cache
def _symbols_by_name() -> dict[str, str]:
    return {_plain(name): symbol for symbol, names in COMPANIES.items() for name in names}


OTHERS = {"COKE", "DOW", "HP", "SEA"}
"""Tickers of other companies that are also what people call one of the list."""

COMPANIES: dict[str, tuple[str, ...]] = {
    "AAL": ("American Airlines",),
    "AAPL": ("Apple", "Apple Computer"),
    "ABBV": ("AbbVie",),
    "ABNB": ("Airbnb",),
    "ABT": ("Abbott", "Abbott Laboratories"),
    "ACN": ("Accenture",),
    "ADBE": ("Adobe", "Adobe Systems"),
    "ADI": ("Analog Devices",),
    "ADP": ("Automatic Data Processing",),
    "ADSK": ("Autodesk",),
    "AFRM": ("Affirm",),
    "AIG": ("American International Group",),
    "ALL": ("Allstate",),
    "AMAT": ("Applied Materials",),
    "AMC": ("AMC Entertainment",),
    "AMD": ("Advanced Micro Devices",),
    "AMGN": ("Amgen",),
    "AMT": ("American Tower",),
    "AMZN": ("Amazon", "Amazon.com"),
    "ANET": ("Arista", "Arista Networks"),
    "APP": ("AppLovin",),
    "ARM": ("Arm", "Arm Holdings"),
    "ASML": ("ASML",),
    "AVGO": ("Broadcom",),
    "AXP": ("American Express", "Amex"),
    "AZN": ("AstraZeneca",),
    "AZO": ("AutoZone",),
    "BA": ("Boeing",),
    "BABA": ("Alibaba", "Alibaba Group"),
    "BAC": ("Bank of America", "BofA"),
    "BBY": ("Best Buy",),
    "BIDU": ("Baidu",),
    "BIIB": ("Biogen",),
    "BK": ("BNY", "Bank of New York Mellon"),
    "BKNG": ("Booking", "Booking Holdings", "Booking.com"),
    "BLK": ("BlackRock",),
    "BMY": ("Bristol Myers Squibb", "Bristol-Myers Squibb"),
    "BP": ("BP", "British Petroleum"),
    "BRK.B": ("Berkshire Hathaway", "Berkshire"),
    "BUD": ("Anheuser-Busch InBev", "AB InBev", "Anheuser-Busch", "Budweiser"),
    "BX": ("Blackstone",),
    "C": ("Citigroup", "Citi", "Citibank"),
    "CAT": ("Caterpillar",),
    "CB": ("Chubb",),
    "CCL": ("Carnival", "Carnival Cruise"),
    "CHTR": ("Charter", "Charter Communications"),
    "CHWY": ("Chewy",),
    "CI": ("Cigna",),
    "CL": ("Colgate-Palmolive", "Colgate"),
    "CMCSA": ("Comcast",),
    "CME": ("CME Group",),
    "CMG": ("Chipotle", "Chipotle Mexican Grill"),
    "COF": ("Capital One",),
    "COIN": ("Coinbase",),
    "COP": ("ConocoPhillips",),
    "COST": ("Costco", "Costco Wholesale"),
    "CRCL": ("Circle", "Circle Internet"),
    "CRM": ("Salesforce", "Salesforce.com"),
    "CRWD": ("CrowdStrike",),
    "CRWV": ("CoreWeave",),
    "CSCO": ("Cisco", "Cisco Systems"),
    "CVNA": ("Carvana",),
    "CVS": ("CVS Health",),
    "CVX": ("Chevron",),
    "DAL": ("Delta Air Lines", "Delta", "Delta Airlines"),
    "DASH": ("DoorDash",),
    "DDOG": ("Datadog",),
    "DE": ("Deere", "John Deere"),
    "DELL": ("Dell", "Dell Technologies"),
    "DG": ("Dollar General",),
    "DHR": ("Danaher",),
    "DIS": ("Disney", "Walt Disney"),
    "DKNG": ("DraftKings",),
    "DJI": ("Dow Jones", "Dow", "Dow Jones Industrial Average"),
    "DLTR": ("Dollar Tree",),
    "DUK": ("Duke Energy",),
    "DUOL": ("Duolingo",),
    "EA": ("Electronic Arts",),
    "EBAY": ("eBay",),
    "EL": ("Estee Lauder", "Estée Lauder"),
    "ENPH": ("Enphase", "Enphase Energy"),
    "ETN": ("Eaton",),
    "ETSY": ("Etsy",),
    "EXPE": ("Expedia",),
    "F": ("Ford", "Ford Motor"),
    "FCX": ("Freeport-McMoRan", "Freeport"),
    "FDX": ("FedEx", "Federal Express"),
    "FIG": ("Figma",),
    "FSLR": ("First Solar",),
    "FTNT": ("Fortinet",),
    "GD": ("General Dynamics",),
    "GE": ("GE Aerospace", "General Electric"),
    "GEV": ("GE Vernova",),
    "GILD": ("Gilead", "Gilead Sciences"),
    "GIS": ("General Mills",),
    "GM": ("General Motors",),
    "GME": ("GameStop",),
    "GOOGL": ("Alphabet", "Google"),
    "GRAB": ("Grab",),
    "GS": ("Goldman Sachs", "Goldman"),
    "GSK": ("GSK", "GlaxoSmithKline"),
    "HAL": ("Halliburton",),
    "HD": ("Home Depot",),
    "HIMS": ("Hims & Hers", "Hims and Hers"),
    "HLT": ("Hilton",),
    "HMC": ("Honda",),
    "HON": ("Honeywell",),
    "HOOD": ("Robinhood",),
    "HPE": ("Hewlett Packard Enterprise",),
    "HPQ": ("HP", "Hewlett-Packard"),
    "HSBC": ("HSBC",),
    "HSY": ("Hershey",),
    "IBM": ("International Business Machines",),
    "ICE": ("Intercontinental Exchange",),
    "INTC": ("Intel",),
    "INTU": ("Intuit",),
    "ISRG": ("Intuitive Surgical",),
    "IXIC": ("Nasdaq Composite", "Nasdaq"),
    "JD": ("JD.com",),
    "JNJ": ("Johnson & Johnson", "Johnson and Johnson"),
    "JPM": ("JPMorgan Chase", "JPMorgan", "JP Morgan", "Chase"),
    "KHC": ("Kraft Heinz", "Heinz"),
    "KKR": ("KKR",),
    "KLAC": ("KLA",),
    "KO": ("Coca-Cola", "Coke", "Coca Cola"),
    "KR": ("Kroger",),
    "LCID": ("Lucid", "Lucid Motors"),
    "LEVI": ("Levi Strauss", "Levi's"),
    "LIN": ("Linde",),
    "LLY": ("Eli Lilly", "Lilly"),
    "LMT": ("Lockheed Martin", "Lockheed"),
    "LOW": ("Lowe's", "Lowes"),
    "LRCX": ("Lam Research",),
    "LULU": ("Lululemon",),
    "LUV": ("Southwest Airlines", "Southwest"),
    "LYFT": ("Lyft",),
    "M": ("Macy's", "Macys"),
    "MA": ("Mastercard",),
    "MAR": ("Marriott",),
    "MARA": ("MARA Holdings", "Marathon Digital"),
    "MCD": ("McDonald's", "McDonalds"),
    "MCK": ("McKesson",),
    "MDB": ("MongoDB",),
    "MDLZ": ("Mondelez",),
    "MDT": ("Medtronic",),
    "MELI": ("MercadoLibre", "Mercado Libre"),
    "META": ("Meta", "Meta Platforms", "Facebook"),
    "MET": ("MetLife",),
    "MMM": ("3M",),
    "MO": ("Altria",),
    "MRK": ("Merck",),
    "MRNA": ("Moderna",),
    "MRVL": ("Marvell", "Marvell Technology"),
    "MS": ("Morgan Stanley",),
    "MSFT": ("Microsoft",),
    "MSTR": ("Strategy", "MicroStrategy"),
    "MU": ("Micron", "Micron Technology"),
    "NEE": ("NextEra Energy", "NextEra"),
    "NEM": ("Newmont",),
    "NET": ("Cloudflare",),
    "NFLX": ("Netflix",),
    "NIO": ("NIO",),
    "NKE": ("Nike",),
    "NOC": ("Northrop Grumman",),
    "NOK": ("Nokia",),
    "NOW": ("ServiceNow",),
    "NU": ("Nu Holdings", "Nubank"),
    "NVDA": ("Nvidia",),
    "NVO": ("Novo Nordisk",),
    "NVS": ("Novartis",),
    "NXPI": ("NXP", "NXP Semiconductors"),
    "OKTA": ("Okta",),
    "ON": ("ON Semiconductor", "onsemi"),
    "ORCL": ("Oracle",),
    "OXY": ("Occidental Petroleum", "Occidental"),
    "PANW": ("Palo Alto Networks",),
    "PDD": ("PDD Holdings", "Pinduoduo", "Temu"),
    "PEP": ("PepsiCo", "Pepsi"),
    "PFE": ("Pfizer",),
    "PG": ("Procter & Gamble", "Procter and Gamble", "P&G"),
    "PINS": ("Pinterest",),
    "PLTR": ("Palantir", "Palantir Technologies"),
    "PM": ("Philip Morris", "Philip Morris International"),
    "PNC": ("PNC", "PNC Financial"),
    "PTON": ("Peloton",),
    "PYPL": ("PayPal",),
    "QCOM": ("Qualcomm",),
    "RACE": ("Ferrari",),
    "RBLX": ("Roblox",),
    "RDDT": ("Reddit",),
    "REGN": ("Regeneron",),
    "RIOT": ("Riot Platforms", "Riot Blockchain"),
    "RIVN": ("Rivian",),
    "RKLB": ("Rocket Lab",),
    "ROKU": ("Roku",),
    "RUT": ("Russell 2000",),
    "RTX": ("RTX", "Raytheon"),
    "SAP": ("SAP",),
    "SBUX": ("Starbucks",),
    "SCHW": ("Charles Schwab", "Schwab"),
    "SE": ("Sea Limited", "Shopee"),
    "SHEL": ("Shell", "Royal Dutch Shell"),
    "SHOP": ("Shopify",),
    "SLB": ("SLB", "Schlumberger"),
    "SMCI": ("Super Micro Computer", "Supermicro", "Super Micro"),
    "SNAP": ("Snap", "Snapchat"),
    "SNOW": ("Snowflake",),
    "SNPS": ("Synopsys",),
    "SO": ("Southern Company",),
    "SOFI": ("SoFi", "SoFi Technologies"),
    "SONY": ("Sony",),
    "SPG": ("Simon Property Group",),
    "SPGI": ("S&P Global",),
    "SPX": ("S&P 500", "S&P", "S and P 500"),
    "SPOT": ("Spotify",),
    "STLA": ("Stellantis",),
    "STX": ("Seagate",),
    "T": ("AT&T", "ATT"),
    "TEAM": ("Atlassian",),
    "TGT": ("Target",),
    "TM": ("Toyota", "Toyota Motor"),
    "TMO": ("Thermo Fisher", "Thermo Fisher Scientific"),
    "TMUS": ("T-Mobile", "T-Mobile US"),
    "TSLA": ("Tesla", "Tesla Motors"),
    "TSM": ("TSMC", "Taiwan Semiconductor", "Taiwan Semiconductor Manufacturing"),
    "TTD": ("The Trade Desk",),
    "TXN": ("Texas Instruments",),
    "UAL": ("United Airlines",),
    "UBER": ("Uber",),
    "UBS": ("UBS",),
    "UL": ("Unilever",),
    "UNH": ("UnitedHealth", "UnitedHealth Group", "United Health"),
    "UNP": ("Union Pacific",),
    "UPS": ("United Parcel Service",),
    "USB": ("US Bancorp", "U.S. Bancorp"),
    "V": ("Visa",),
    "VRTX": ("Vertex", "Vertex Pharmaceuticals"),
    "VZ": ("Verizon",),
    "WBD": ("Warner Bros. Discovery", "Warner Bros"),
    "WDAY": ("Workday",),
    "WDC": ("Western Digital",),
    "WFC": ("Wells Fargo",),
    "WM": ("Waste Management",),
    "WMT": ("Walmart",),
    "XOM": ("ExxonMobil", "Exxon", "Exxon Mobil"),
    "XYZ": ("Block", "Square"),
    "ZM": ("Zoom", "Zoom Communications"),
    "ZS": ("Zscaler",),
}
"""The names of companies, and of indices, by their tickers, the usual name first."""
