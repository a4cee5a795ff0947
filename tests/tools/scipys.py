"""What SciPy says: it takes a second to import, which only a process spends that asks it."""

from collections.abc import Sequence
from typing import Any


def pearsonr(one: Sequence[float], other: Sequence[float]) -> Any:
    """Pearson's correlation of two series, as `statistic`."""
    from scipy import stats

    return stats.pearsonr(one, other)
