"""Simulate Open-Meteo's geocoder on the wire: some cities of the world, and small ones with the same names."""

from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, serves

HOST, CUSTOMER = "geocoding-api.open-meteo.com", "customer-geocoding-api.open-meteo.com"


class SimPlace(NamedTuple):
    """One place."""

    name: str
    region: str
    country: str
    code: str
    lat: float
    lon: float
    population: int


PLACES = tuple(
    SimPlace(*row)
    for row in (
        ("Amsterdam", "North Holland", "Netherlands", "NL", 52.37403, 4.88969, 741636),
        ("Atlanta", "Georgia", "United States", "US", 33.749, -84.38798, 463878),
        ("Austin", "Texas", "United States", "US", 30.26715, -97.74306, 931830),
        ("Bangkok", "Bangkok", "Thailand", "TH", 13.75398, 100.50144, 5104476),
        ("Barcelona", "Catalonia", "Spain", "ES", 41.38879, 2.15899, 1620343),
        ("Beijing", "Beijing", "China", "CN", 39.9075, 116.39723, 18960744),
        ("Berlin", "State of Berlin", "Germany", "DE", 52.52437, 13.41053, 3426354),
        ("Berlin", "New Hampshire", "United States", "US", 44.46867, -71.18508, 9367),
        ("Boston", "Massachusetts", "United States", "US", 42.35843, -71.05977, 667137),
        ("Buenos Aires", "Buenos Aires F.D.", "Argentina", "AR", -34.61315, -58.37723, 13076300),
        ("Cairo", "Cairo", "Egypt", "EG", 30.06263, 31.24967, 9606916),
        ("Cape Town", "Western Cape", "South Africa", "ZA", -33.92584, 18.42322, 3433441),
        ("Chicago", "Illinois", "United States", "US", 41.85003, -87.65005, 2720546),
        ("Copenhagen", "Capital Region", "Denmark", "DK", 55.67594, 12.56553, 1153615),
        ("Dallas", "Texas", "United States", "US", 32.78306, -96.80667, 1300092),
        ("Delhi", "Delhi", "India", "IN", 28.65195, 77.23149, 11034555),
        ("Denver", "Colorado", "United States", "US", 39.73915, -104.9847, 715522),
        ("Dubai", "Dubai", "United Arab Emirates", "AE", 25.07725, 55.30927, 2956587),
        ("Dublin", "Leinster", "Ireland", "IE", 53.33306, -6.24889, 1024027),
        ("Hamburg", "Hamburg", "Germany", "DE", 53.55073, 9.99302, 1845229),
        ("Helsinki", "Uusimaa", "Finland", "FI", 60.16952, 24.93545, 558457),
        ("Hong Kong", "Central and Western", "Hong Kong", "HK", 22.27832, 114.17469, 7491609),
        ("Houston", "Texas", "United States", "US", 29.76328, -95.36327, 2304580),
        ("Istanbul", "Istanbul", "Turkey", "TR", 41.01384, 28.94966, 14804116),
        ("Jakarta", "Jakarta", "Indonesia", "ID", -6.21462, 106.84513, 8540121),
        ("Johannesburg", "Gauteng", "South Africa", "ZA", -26.20227, 28.04363, 2026469),
        ("Lagos", "Lagos", "Nigeria", "NG", 6.45407, 3.39467, 15388000),
        ("Lima", "Lima Province", "Peru", "PE", -12.04318, -77.02824, 7737002),
        ("Lisbon", "Lisbon District", "Portugal", "PT", 38.71667, -9.13333, 517802),
        ("London", "England", "United Kingdom", "GB", 51.50853, -0.12574, 8961989),
        ("London", "Ontario", "Canada", "CA", 42.98339, -81.23304, 422324),
        ("Los Angeles", "California", "United States", "US", 34.05223, -118.24368, 3971883),
        ("Madrid", "Madrid", "Spain", "ES", 40.4165, -3.70256, 3255944),
        ("Melbourne", "Victoria", "Australia", "AU", -37.814, 144.96332, 4917750),
        ("Mexico City", "Mexico City", "Mexico", "MX", 19.42847, -99.12766, 12294193),
        ("Miami", "Florida", "United States", "US", 25.77427, -80.19366, 441003),
        ("Milan", "Lombardy", "Italy", "IT", 45.46427, 9.18951, 1371498),
        ("Moscow", "Moscow", "Russia", "RU", 55.75222, 37.61556, 10381222),
        ("Mumbai", "Maharashtra", "India", "IN", 19.07283, 72.88261, 12691836),
        ("Munich", "Bavaria", "Germany", "DE", 48.13743, 11.57549, 1260391),
        ("Nairobi", "Nairobi County", "Kenya", "KE", -1.28333, 36.81667, 2750547),
        ("New York", "New York", "United States", "US", 40.71427, -74.00597, 8175133),
        ("Oslo", "Oslo", "Norway", "NO", 59.91273, 10.74609, 580000),
        ("Paris", "Île-de-France", "France", "FR", 48.85341, 2.3488, 2138551),
        ("Paris", "Texas", "United States", "US", 33.66094, -95.55551, 24171),
        ("Philadelphia", "Pennsylvania", "United States", "US", 39.95238, -75.16362, 1567442),
        ("Phoenix", "Arizona", "United States", "US", 33.44838, -112.07404, 1608139),
        ("Portland", "Oregon", "United States", "US", 45.52345, -122.67621, 632309),
        ("Portland", "Maine", "United States", "US", 43.65737, -70.2589, 68408),
        ("Prague", "Prague", "Czechia", "CZ", 50.08804, 14.42076, 1165581),
        ("Rio de Janeiro", "Rio de Janeiro", "Brazil", "BR", -22.90642, -43.18223, 6747815),
        ("Rome", "Lazio", "Italy", "IT", 41.89193, 12.51133, 2318895),
        ("San Francisco", "California", "United States", "US", 37.77493, -122.41942, 864816),
        ("San Jose", "California", "United States", "US", 37.33939, -121.89496, 1026908),
        ("San José", "San José", "Costa Rica", "CR", 9.93388, -84.08489, 335007),
        ("São Paulo", "São Paulo", "Brazil", "BR", -23.5475, -46.63611, 10021295),
        ("Seattle", "Washington", "United States", "US", 47.60621, -122.33207, 737015),
        ("Seoul", "Seoul", "South Korea", "KR", 37.566, 126.9784, 10349312),
        ("Shanghai", "Shanghai", "China", "CN", 31.22222, 121.45806, 24874500),
        ("Singapore", "", "Singapore", "SG", 1.28967, 103.85007, 5638700),
        ("Springfield", "Missouri", "United States", "US", 37.21533, -93.29824, 166810),
        ("Springfield", "Massachusetts", "United States", "US", 42.10148, -72.58981, 154341),
        ("Springfield", "Illinois", "United States", "US", 39.80172, -89.64371, 116565),
        ("Stockholm", "Stockholm", "Sweden", "SE", 59.32938, 18.06871, 1515017),
        ("Sydney", "New South Wales", "Australia", "AU", -33.86785, 151.20732, 4627345),
        ("Tokyo", "Tokyo", "Japan", "JP", 35.6895, 139.69171, 9733276),
        ("Toronto", "Ontario", "Canada", "CA", 43.70643, -79.39864, 2731571),
        ("Vancouver", "British Columbia", "Canada", "CA", 49.24966, -123.11934, 662248),
        ("Vienna", "Vienna", "Austria", "AT", 48.20849, 16.37208, 1691468),
        ("Warsaw", "Mazovia", "Poland", "PL", 52.22977, 21.01178, 1702139),
        ("Washington", "District of Columbia", "United States", "US", 38.89511, -77.03637, 689545),
        ("Zurich", "Zurich", "Switzerland", "CH", 47.36667, 8.55, 341730),
    )
)


def search(world: World, ask: Ask) -> Reply:
    """Search by the beginning of the name, without case; larger places first. Without a match `results` is missing."""
    name = ask.params.get("name", "").strip().casefold()
    if len(name) < 2:
        return Reply.json({"generationtime_ms": 0.2})
    places = [place for place in PLACES if name in (place.name.casefold(), _plain(place.name))]
    places = places or [place for place in PLACES if len(name) > 2 and place.name.casefold().startswith(name)]
    rows = [_row(place) for place in sorted(places, key=lambda place: -place.population)]
    return Reply.json(
        {"results": rows[: int(ask.params.get("count", "10"))], "generationtime_ms": 0.64}
        if rows
        else {"generationtime_ms": 0.31}
    )


def _plain(name: str) -> str:
    return name.casefold().translate(str.maketrans("ãéÎ", "aei"))


def _row(place: SimPlace) -> dict[str, Any]:
    return {
        "id": round(abs(place.lat) * 10_000) * 100 + round(abs(place.lon)),
        "name": place.name,
        "latitude": place.lat,
        "longitude": place.lon,
        "elevation": 42.0,
        "feature_code": "PPL",
        "country_code": place.code,
        "population": place.population,
        "country": place.country,
        **({"admin1": place.region} if place.region else {}),
    }


FORMS = {
    "empty": Reply.json({"generationtime_ms": 0.31}),
    "limited": Reply.json({"error": True, "reason": "Minutely API request limit exceeded."}, 429),
    "error200": Reply.json({"error": True, "reason": "Parameter name is missing"}),
}
for _host in (HOST, CUSTOMER):
    serves("OpenMeteo.geocoding", _host, "/v1/search", forms=FORMS)(search)
