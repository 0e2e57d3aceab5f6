"""Say to all that goes on in a process that it has been told to end.

It is a flag to look at, which a signal's handler may set: that runs between any two instructions
of the main thread, where nothing may be waited for.
"""

from dataclasses import dataclass
from functools import cache


@dataclass(slots=True)
class Shutdown:
    """End of a process.

    Attributes:
        has_begun: whether the process has been told to end; what it would begin now is lost.
    """

    has_begun: bool = False


@cache
def shutdown() -> Shutdown:
    """Return the end of this process.

    >>> shutdown().has_begun
    False
    """
    return Shutdown()
