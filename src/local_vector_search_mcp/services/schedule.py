"""When the worker does something by itself: the periodic look, tries after failures, and giving memory back. Pure."""

from typing import Final

PERIOD_S: Final = 600.0
GUARD_RETRY_S: Final = 60.0
FIRST_RETRY_S: Final = 30.0
TRIM_AFTER_S: Final = 5.0


class Schedule:
    """Times on one clock; every method is given the present one."""

    def __init__(self) -> None:
        self._period_at = 0.0
        self._retry_at: float | None = None
        self._retry_s = FIRST_RETRY_S
        self._trim_at: float | None = None

    @property
    def awaits_retry(self) -> bool:
        """Whether something failed and will be tried again."""
        return self._retry_at is not None

    def begin_period(self, now: float) -> None:
        """The next periodic look is a whole period away."""
        self._period_at = now + PERIOD_S

    def retry_later(self, now: float) -> None:
        """Something failed: try again soon, and less often each time."""
        self._retry_at = now + self._retry_s
        self._retry_s = min(self._retry_s * 2, PERIOD_S)

    def retry_in(self, seconds: float, now: float) -> None:
        """Look again at a given time."""
        self._retry_at = now + seconds

    def all_well(self) -> None:
        """Nothing is left to be tried again."""
        self._retry_at, self._retry_s = None, FIRST_RETRY_S

    def has_worked(self, now: float) -> None:
        """Memory was used; it is given back when the worker has rested for a while."""
        self._trim_at = now + TRIM_AFTER_S

    def take_run(self, now: float) -> bool:
        """Whether it is time for a look at everything; then the next period begins."""
        due = now >= self._period_at or (self._retry_at is not None and now >= self._retry_at)
        if due:
            self._retry_at = None
            self.begin_period(now)
        return due

    def take_trim(self, now: float) -> bool:
        """Whether it is time to give memory back."""
        due = self._trim_at is not None and now >= self._trim_at
        if due:
            self._trim_at = None
        return due
