"""Multiplies the generator of secp256k1 by a table, because a quote must cost little CPU: anyone may request one."""

from collections.abc import Sequence
from functools import cache

from eth_keys.backends.native.jacobian import jacobian_add, jacobian_double
from eth_keys.constants import SECPK1_G, SECPK1_P

Point = tuple[int, int]
_Jacobian = tuple[int, int, int]
_BITS = 8
_NO_POINT: Point = (0, 0)


def add_multiple(factor: int, point: Point) -> Point:
    """Return the generator times `factor` (below 2^256) plus another point, or (0, 0) for the point at infinity."""
    total: _Jacobian = (*point, 1)
    for row in _table():
        if digit := factor % 2**_BITS:
            total = _add(total, row[digit])
        factor >>= _BITS
    return _affine([total])[0]


@cache
def _table() -> list[list[Point]]:
    """Return, for each place of a factor in base 256, the point that each digit adds: 8160 points, 1.4 MB, made once
    in 60 ms.
    """
    rows: list[list[Point]] = []
    base = SECPK1_G
    for _ in range(256 // _BITS):
        row: list[_Jacobian] = [(*base, 1)]
        while len(row) < 2**_BITS - 1:
            row.append(_add(row[-1], base))
        *points, base = _affine([*row, jacobian_double(row[2 ** (_BITS - 1) - 1])])
        rows.append([_NO_POINT, *points])
    return rows


def _add(total: _Jacobian, point: Point) -> _Jacobian:
    """Return the sum with a point of the table, by 11 multiplications; the general sum of `eth_keys` takes 16."""
    (x1, y1, z1), (x2, y2) = total, point
    square = z1 * z1 % SECPK1_P
    across = (x2 * square - x1) % SECPK1_P
    if not across or not y1:  # the same point, its opposite, or the point at infinity
        return jacobian_add(total, (x2, y2, 1))
    up = y2 * square * z1 - y1
    across_2 = across * across % SECPK1_P
    across_3, base = across_2 * across % SECPK1_P, x1 * across_2 % SECPK1_P
    x3 = (up * up - across_3 - 2 * base) % SECPK1_P
    return x3, (up * (base - x3) - y1 * across_3) % SECPK1_P, z1 * across % SECPK1_P


def _affine(points: Sequence[_Jacobian]) -> list[Point]:
    """Return the points as two coordinates. One inversion, which costs as much as 60 multiplications, serves all."""
    before, product = [], 1
    for _, _, z in points:
        before.append(product)
        product = product * z % SECPK1_P
    inverse, points_reversed = pow(product, -1, SECPK1_P), []
    for (x, y, z), others in zip(reversed(points), reversed(before), strict=True):
        own = inverse * others % SECPK1_P
        inverse = inverse * z % SECPK1_P
        square = own * own % SECPK1_P
        points_reversed.append((x * square % SECPK1_P, y * square * own % SECPK1_P) if y else _NO_POINT)
    return points_reversed[::-1]
