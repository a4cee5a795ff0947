"""Counts what is spent on a UTC day, for the caps of allowances and for those that the owner of a token sets.

Spending counts from the reservation on, so that concurrent calls cannot cross a cap together.
Credits that are given back are deducted from the day on which they were reserved.
"""

DAY_MS = 86_400_000


class DailySpending:
    """The spending of one day, beside a cap per day. `day` is in days since 1970; times are in ms."""

    credits_per_day: int | None
    day: int
    spent_today: int

    def spent_on(self, day: int) -> int:
        """Return the credits spent on a day: `spent_today` for the day that is counted, and 0 for any other."""
        return self.spent_today if day == self.day else 0

    def find_room_today(self, now: int) -> int | None:
        """Return how many credits the cap per day still allows to spend now; None if there is no such cap."""
        return None if self.credits_per_day is None else max(0, self.credits_per_day - self.spent_on(now // DAY_MS))

    def count(self, credits: int, now: int) -> int:
        """Count credits that are reserved now, and return the day for which they count."""
        day = now // DAY_MS
        if day != self.day:
            self.day, self.spent_today = day, 0
        self.spent_today += credits
        return day

    def uncount(self, credits: int, day: int | None) -> None:
        """Deduct credits that were reserved on a day and are given back, if that day is still counted."""
        if day == self.day:
            self.spent_today -= credits
