"""Keep what was found out about a network for as long as the network stays as it is."""

import threading
from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import nn

from hookviz.hooking.network_state import ByNetwork, unchanged

Finding = TypeVar("Finding")


class Findings(Generic[Finding]):
    """Findings about networks, each by a key of its own; the oldest of a network's go first."""

    def __init__(self, most: int) -> None:
        """Keep at most so many of one network."""
        self._most = most
        self._lock = threading.Lock()
        self._known: MutableMapping[nn.Module, KnownOfNetwork[Finding]] = ByNetwork()

    def of(self, network: nn.Module) -> "KnownOfNetwork[Finding]":
        """Return the findings about a network as it is now; none where it was changed."""
        with unchanged(network), self._lock:
            known = self._known.get(network)
            if known is None:
                known = self._known[network] = KnownOfNetwork(self._most)
            return known


@dataclass(eq=False, slots=True)
class KnownOfNetwork(Generic[Finding]):
    """Findings about a network in one state."""

    most: int
    findings: dict[Hashable, Finding] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable) -> Finding | None:
        """Return the finding, or None where there is none."""
        with self.lock:
            return self.findings.get(key)

    def find(self, key: Hashable, work_out: Callable[[], Finding]) -> Finding:
        """Return the finding, worked out where there is none."""
        found = self.get(key)
        return self.keep(key, work_out()) if found is None else found

    def keep(self, key: Hashable, finding: Finding) -> Finding:
        """Keep a finding, and return it."""
        with self.lock:
            while len(self.findings) >= self.most:
                self.findings.pop(next(iter(self.findings)))
            self.findings[key] = finding
        return finding
