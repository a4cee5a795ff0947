"""Multiples of the generator of secp256k1, from a table: a quote must cost little, because anyone may ask for one."""

from functools import cache

from eth_keys.backends.native.jacobian import jacobian_add, jacobian_double
from eth_keys.constants import SECPK1_G, SECPK1_P

Point = tuple[int, int]
_Jacobian = tuple[int, int, int]
_BITS = 4
_ZERO: _Jacobian = (0, 0, 1)


def add_multiple(factor: int, point: Point) -> Point:
    """The generator times `factor`, below 2^256, plus another point; (0, 0) when the sum is the point at infinity."""
    total: _Jacobian = (*point, 1)
    for row in _table():
        if digit := factor % 2**_BITS:
            total = jacobian_add(total, row[digit])
        factor >>= _BITS
    return _affine(total)


@cache
def _table() -> list[list[_Jacobian]]:
    """For each place of a factor in base 16, what each digit there adds: 960 points, made once in some 10 ms."""
    rows: list[list[_Jacobian]] = []
    base: _Jacobian = (*SECPK1_G, 1)
    for _ in range(256 // _BITS):
        row = [_ZERO, base]
        while len(row) < 2**_BITS:
            row.append(jacobian_add(row[-1], base))
        rows.append([(*_affine(point), 1) for point in row])
        base = jacobian_double(row[2 ** (_BITS - 1)])
    return rows


def _affine(point: _Jacobian) -> Point:
    x, y, z = point
    if not y:
        return 0, 0
    inverse = pow(z, -1, SECPK1_P)
    return x * inverse**2 % SECPK1_P, y * inverse**3 % SECPK1_P
