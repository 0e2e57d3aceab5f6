"""Keep what was found out about a network for as long as the network stays as it is."""

import threading
from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.hooking import purity, replicas
from hookviz.hooking.network_state import state_of

Finding = TypeVar("Finding")


class Findings(Generic[Finding]):
    """Findings about networks, each by a key of its own; the oldest of a network's go first."""

    def __init__(self, most: int) -> None:
        """Keep at most so many of one network."""
        self._most = most
        self._lock = threading.Lock()
        self._known: MutableMapping[nn.Module, _Known[Finding]] = WeakIdKeyDictionary()

    def of(self, network: nn.Module) -> "_Known[Finding]":
        """Return the findings about a network as it is now.

        Where it was changed, they are forgotten, and whether it is pure, and its replicas.
        """
        state = state_of(network)
        with self._lock:
            known = self._known.get(network)
            if known is None or known.state != state:
                if known is not None:
                    purity.forget(network)
                    replicas.forget(network)
                known = self._known[network] = _Known(self._most, state)
            return known


@dataclass(eq=False, slots=True)
class _Known(Generic[Finding]):
    """Findings about a network in one state."""

    most: int
    state: int
    findings: dict[Hashable, Finding] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable) -> Finding | None:
        """Return the finding, or None where there is none."""
        with self.lock:
            return self.findings.get(key)

    def keep(self, key: Hashable, finding: Finding) -> Finding:
        """Keep a finding, and return it."""
        with self.lock:
            while len(self.findings) >= self.most:
                self.findings.pop(next(iter(self.findings)))
            self.findings[key] = finding
        return finding
