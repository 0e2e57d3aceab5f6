"""Record what layers put out in a pass, each call apart, and tell what was overwritten later."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from hookviz.hooking.hooks import Call, plain_tensors_in
from hookviz.hooking.torch_functions import counter
from hookviz.types import ActivationKey


@dataclass(frozen=True, eq=False, slots=True)
class Recorded:
    """Tensor that a layer put out, held by reference, with proof of whether it was overwritten.

    Attributes:
        address: layer, call and part of the output.
        tensor: as the layer returned it, or a copy of it where a copy was asked for.
        version: the tensor's version counter at that moment; −1 for a copy of an inference tensor,
            which has none.
    """

    address: ActivationKey
    tensor: Tensor
    version: int

    @property
    def overwritten(self) -> bool:
        """Whether something wrote into the tensor after the hook had seen it.

        An in-place operation counts up ``_version``, also through views of the same memory.
        """
        return self.version >= 0 and self.tensor._version != self.version


class Recorder:
    """Record of every tensor that the observed layers put out."""

    def __init__(self, copy: Iterable[str] = (), *, detach: bool = True) -> None:
        """Start empty; outputs of the layers in `copy` are copied, as they get overwritten."""
        self.records: list[Recorded] = []
        self._detach = detach
        self._copy = frozenset(copy)

    def see(self, call: Call, *, is_last: bool = False) -> None:
        """Record every tensor of a call's output, nested or not, as ordinary numbers.

        Of the last call of a pass, after which nothing writes, nothing is copied.
        """
        for path, tensor in plain_tensors_in(call.output):
            kept = tensor.detach() if self._detach else tensor
            if (call.layer in self._copy and not is_last) or counter(kept) is None:
                kept = kept.clone()
            address, written = ActivationKey(call.layer, call.index, path), counter(kept)
            self.records.append(Recorded(address, kept, -1 if written is None else written))

    def overwritten_layers(self) -> frozenset[str]:
        """Return the layers whose recorded output was written to later: it can't be trusted."""
        return frozenset(record.address.layer for record in self.records if record.overwritten)
