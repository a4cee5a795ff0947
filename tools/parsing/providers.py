"""Hold what several sources of one provider share: its licence, its address, and how it reports an error."""

from typing import Any

from tools.parsing.fields import clean
from toolserver import Licence, SourceChanged, SourceLimited, SourceRefused

USGS_LICENCE = Licence("yes", "U.S. Geological Survey", "https://www.usgs.gov/information-policies-and-instructions")
NWS_LICENCE = Licence("yes", "NOAA/National Weather Service", "https://www.weather.gov/disclaimer")
OKX_API = "https://www.okx.com/api/v5"
OKX_LICENCE = Licence("no", "OKX", "https://www.okx.com/help/terms-of-service")
OKX_LIMITED = {"50011", "50061"}
OKX_BUSY = {"50001", "50004", "50013", "50026"}  # service down, timed out, busy, system error


def check_okx_body(body: Any) -> list[Any]:
    """Return `data` when `code` is "0", and raise a SourceError otherwise: errors come with status 200."""
    code = str(body["code"])
    if code == "0":
        return body["data"]  # type: ignore[no-any-return]
    text = clean(f"{code} {body.get('msg', '')}", 80)
    if code in OKX_LIMITED:
        raise SourceLimited(text)
    raise (SourceRefused if code in OKX_BUSY else SourceChanged)(text)


BINANCE_LICENCE = Licence("no", "Binance", "https://www.binance.com/en/terms")
BINANCE_GEO, BINANCE_BANNED = 0, -1003  # values of `code`: 0 is an error here


def refuse_binance_error(body: Any) -> None:
    """Raise a SourceError for an object with `code` and `msg`, which Binance sends even where a list is expected."""
    if not isinstance(body, dict) or "code" not in body:
        return
    if body["code"] == BINANCE_BANNED:
        raise SourceLimited("too many requests")
    text = clean(str(body.get("msg")), 80)
    raise (SourceRefused if body["code"] == BINANCE_GEO else SourceChanged)(text)
