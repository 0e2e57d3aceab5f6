"""Where captured tensors are kept: on which device, in which precision, with their graph or not."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from hookviz.errors import SettingError, shorten
from hookviz.language.saying import say

SAME = "same"


@dataclass(frozen=True, slots=True)
class Storage:
    """How tensors of a pass are kept.

    Attributes:
        device: ``"cpu"``, another device of torch's, or ``"same"`` for where the layer put it out.
        dtype: None for float32 (complex64 of complex numbers), ``"same"``, or a type of torch's.
        detach: whether they are cut off from the graph that made them.
    """

    device: str | torch.device = "cpu"
    dtype: torch.dtype | str | None = None
    detach: bool = True

    def __post_init__(self) -> None:
        if self.device not in ("cpu", SAME):
            try:
                torch.empty(0, device=self.device)
            except (RuntimeError, TypeError, AssertionError) as error:
                raise SettingError(
                    say(
                        'device={device} keeps no tensors here: {reason}. "cpu" does, and "same", '
                        "which leaves them where the network runs.",
                        device=shorten(repr(self.device)),
                        reason=shorten(str(error).partition("\n")[0].rstrip("."), 120),
                    )
                ) from error
        if not (self.dtype is None or self.dtype == SAME or isinstance(self.dtype, torch.dtype)):
            raise SettingError(
                say(
                    'dtype={dtype} is no type of torch\'s; give one, such as torch.float16, "same" '
                    "for the layer's own, or None for float32.",
                    dtype=shorten(repr(self.dtype)),
                )
            )

    def keep(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Return tensors as they are kept, each in memory of its own size.

        From a GPU to the host all are queued through pinned memory, and waited for once.
        """
        tensors = list(tensors)
        kept = [self._queue(tensor) for tensor in tensors]
        for device in {tensor.device for tensor in tensors if tensor.is_cuda}:
            torch.cuda.current_stream(device).synchronize()
        return kept

    def _queue(self, tensor: Tensor) -> Tensor:
        kept = tensor.detach() if self.detach else tensor
        if self.dtype is None:  # the real part of a complex number would be another number
            kept = kept.to(torch.complex64 if kept.is_complex() else torch.float32)
        elif isinstance(self.dtype, torch.dtype):
            kept = kept.to(self.dtype)
        target = kept.device if self.device == SAME else torch.device(self.device)
        if kept.is_cuda and target.type == "cpu" and self.detach:
            host = torch.empty(kept.shape, dtype=kept.dtype, pin_memory=True)
            return host.copy_(kept, non_blocking=True)
        kept = kept.to(target).contiguous()
        if kept.is_inference() or kept.untyped_storage().nbytes() > kept.nbytes:
            kept = kept.clone()  # a view would keep all of a larger tensor alive
        return kept


HOST = Storage()
"""float32 on the CPU, without a graph: what the app and every lens keep."""
