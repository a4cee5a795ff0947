"""Find roughly which U.S. state a point is in, by boxes that overlap at the borders."""

from typing import NamedTuple


class Box(NamedTuple):
    """The box around a state, in degrees."""

    state: str
    south: float
    north: float
    west: float
    east: float

    def holds(self, lat: float, lon: float) -> bool:
        return self.south <= lat <= self.north and self.west <= lon <= self.east

    def off_centre(self, lat: float, lon: float) -> float:
        """Return 0 in the middle of the box, 1 at its edge."""
        height, width = self.north - self.south, self.east - self.west
        return max(abs(2 * lat - self.south - self.north) / height, abs(2 * lon - self.west - self.east) / width)


BOXES = (
    Box("AL", 30.2, 35, -88.5, -84.9),
    Box("AK", 51.2, 71.5, -179.9, -129.9),
    Box("AZ", 31.3, 37, -114.8, -109),
    Box("AR", 33, 36.5, -94.6, -89.6),
    Box("CA", 32.5, 42, -124.5, -114.1),
    Box("CO", 37, 41, -109.1, -102),
    Box("CT", 40.9, 42.1, -73.7, -71.8),
    Box("DE", 38.4, 39.9, -75.8, -75),
    Box("DC", 38.8, 39, -77.1, -76.9),
    Box("FL", 24.4, 31, -87.6, -80),
    Box("GA", 30.4, 35, -85.6, -80.8),
    Box("HI", 18.9, 22.3, -160.3, -154.8),
    Box("ID", 42, 49, -117.2, -111),
    Box("IL", 37, 42.5, -91.5, -87),
    Box("IN", 37.8, 41.8, -88.1, -84.8),
    Box("IA", 40.4, 43.5, -96.6, -90.1),
    Box("KS", 37, 40, -102.1, -94.6),
    Box("KY", 36.5, 39.1, -89.6, -82),
    Box("LA", 28.9, 33, -94, -88.8),
    Box("ME", 43, 47.5, -71.1, -66.9),
    Box("MD", 37.9, 39.7, -79.5, -75),
    Box("MA", 41.2, 42.9, -73.5, -69.9),
    Box("MI", 41.7, 48.3, -90.4, -82.1),
    Box("MN", 43.5, 49.4, -97.2, -89.5),
    Box("MS", 30.2, 35, -91.7, -88.1),
    Box("MO", 36, 40.6, -95.8, -89.1),
    Box("MT", 44.4, 49, -116.1, -104),
    Box("NE", 40, 43, -104.1, -95.3),
    Box("NV", 35, 42, -120, -114),
    Box("NH", 42.7, 45.3, -72.6, -70.6),
    Box("NJ", 38.9, 41.4, -75.6, -73.9),
    Box("NM", 31.3, 37, -109.1, -103),
    Box("NY", 40.5, 45, -79.8, -71.9),
    Box("NC", 33.8, 36.6, -84.3, -75.5),
    Box("ND", 45.9, 49, -104.1, -96.6),
    Box("OH", 38.4, 42, -84.8, -80.5),
    Box("OK", 33.6, 37, -103, -94.4),
    Box("OR", 42, 46.3, -124.6, -116.5),
    Box("PA", 39.7, 42.3, -80.5, -74.7),
    Box("RI", 41.1, 42, -71.9, -71.1),
    Box("SC", 32, 35.2, -83.4, -78.5),
    Box("SD", 42.5, 45.9, -104.1, -96.4),
    Box("TN", 35, 36.7, -90.3, -81.6),
    Box("TX", 25.8, 36.5, -106.6, -93.5),
    Box("UT", 37, 42, -114.1, -109),
    Box("VT", 42.7, 45, -73.4, -71.5),
    Box("VA", 36.5, 39.5, -83.7, -75.2),
    Box("WA", 45.5, 49, -124.8, -116.9),
    Box("WV", 37.2, 40.6, -82.6, -77.7),
    Box("WI", 42.5, 47.1, -92.9, -86.8),
    Box("WY", 41, 45, -111.1, -104.1),
)


def state_of(lat: float, lon: float) -> str | None:
    """Return the state in whose box the point is nearest to the middle; None outside all boxes."""
    boxes = [box for box in BOXES if box.holds(lat, lon)]
    return min(boxes, key=lambda box: box.off_centre(lat, lon)).state if boxes else None
