"""Set how patient a transfer is with a slow line and a server that fails."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Timeouts and limits of a transfer, in seconds where an attribute does not say otherwise.

    Attributes:
        connect: for a connection.
        stall: without a single byte.
        attempts: how many may fail one after the other.
        backoff: before the second attempt, doubled before each later one.
        longest_pause: between two attempts, even where the server's Retry-After asks for more.
        headway: bytes that an attempt must add for the count of attempts to begin anew, so that
            a large file comes over a line that breaks again and again.
        report: between two reports to who waits.
        interest: that one `Download.watch` holds.
    """

    connect: float = 10.0
    stall: float = 20.0
    attempts: int = 4
    backoff: float = 1.0
    longest_pause: float = 30.0
    headway: int = 1_000_000
    report: float = 0.25
    interest: float = 5.0
