"""What people do between the layers of a network: the operations of random networks.

Each is a function of the chain that it stands in, which has buffers and attributes to keep things
in, and of a map of `WIDTH` channels and any size; it gives such a map back. A long file of small
things, as that of the blocks is.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.dlpack import from_dlpack

WIDTH = 4


class Holder(nn.Module):
    """A chain's own state, which its operations use."""

    count: Tensor
    average: Tensor
    spread: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(WIDTH, WIDTH, 3, 3) * 0.2)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("average", torch.zeros(WIDTH))
        self.register_buffer("spread", torch.ones(WIDTH))
        self.calls = 0
        self.memory: list[float] = []
        self.by_name: dict[str, Any] = {}


Operation = Callable[[Holder, Tensor], Tensor]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    OPERATIONS[function.__name__] = function
    return function


def as_array(x: Tensor) -> np.ndarray:
    """The tensor's own memory, as whole numbers where NumPy has no such type."""
    plain = x.detach()
    return np.asarray(plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain)


# Writes into an activation that version counters see.


@operation
def relu_in_place(holder: Holder, x: Tensor) -> Tensor:
    return F.relu_(x)


@operation
def adds_in_place(holder: Holder, x: Tensor) -> Tensor:
    return x.add_(0.25)


@operation
def multiplies_in_place(holder: Holder, x: Tensor) -> Tensor:
    x *= 0.75
    return x


@operation
def writes_a_slice(holder: Holder, x: Tensor) -> Tensor:
    x[:, 1] = 0.5
    return x


@operation
def writes_through_a_view(holder: Holder, x: Tensor) -> Tensor:
    x.transpose(2, 3)[:, :, ::2].mul_(0.5)
    return x


@operation
def writes_by_mask(holder: Holder, x: Tensor) -> Tensor:
    x[x > 0.5] *= 0.5
    return x


@operation
def writes_into_out(holder: Holder, x: Tensor) -> Tensor:
    return torch.clamp(x, -0.5, 0.5, out=x)


@operation
def writes_many_at_once(holder: Holder, x: Tensor) -> Tensor:
    torch._foreach_mul_([x], 0.5)
    return x


@operation
def swaps_its_memory(holder: Holder, x: Tensor) -> Tensor:
    before = x.clone()
    x.copy_(before.flip(1))
    return x


# Writes into an activation that they miss.


@operation
def clamps_data(holder: Holder, x: Tensor) -> Tensor:
    x.data.clamp_(-0.3, 0.3)
    return x


@operation
def sets_data(holder: Holder, x: Tensor) -> Tensor:
    x.data = x.data * 0.5 + 0.1
    return x


@operation
def writes_through_numpy(holder: Holder, x: Tensor) -> Tensor:
    as_array(x)[:, 0] = 0
    return x


@operation
def writes_through_dlpack(holder: Holder, x: Tensor) -> Tensor:
    from_dlpack(x.detach()).mul_(0.5)
    return x


@operation
def writes_through_storage(holder: Holder, x: Tensor) -> Tensor:
    torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())[:5] = 0.25
    return x


@operation
def writes_in_another_thread(holder: Holder, x: Tensor) -> Tensor:
    def write() -> None:
        x.data.mul_(0.5)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    return x


_halves_data = torch.jit.CompilationUnit(
    "def halve(x):\n    x.data.mul_(0.5)\n    return x\n"
).halve


@operation
def writes_in_a_script(holder: Holder, x: Tensor) -> Tensor:
    halved: Tensor = _halves_data(x)
    return halved


class _Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x.data.mul_(0.5)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 0.5


@operation
def writes_in_a_function_of_autograd(holder: Holder, x: Tensor) -> Tensor:
    halved: Tensor = _Halves.apply(x)
    return halved


# State that outlives a pass.


@operation
def counts_in_a_buffer(holder: Holder, x: Tensor) -> Tensor:
    holder.count += 1
    return x * (1 + 0.1 * holder.count).to(x.dtype)


@operation
def replaces_a_buffer(holder: Holder, x: Tensor) -> Tensor:
    holder.count = holder.count + 1
    return x * (1 + 0.1 * holder.count).to(x.dtype)


@operation
def counts_in_an_attribute(holder: Holder, x: Tensor) -> Tensor:
    holder.calls += 1
    return x * (1 + 0.1 * holder.calls)


@operation
def grows_a_list(holder: Holder, x: Tensor) -> Tensor:
    holder.memory.append(0.5)
    return x * (1 + 0.1 * len(holder.memory))


@operation
def keeps_a_tensor(holder: Holder, x: Tensor) -> Tensor:
    last = holder.by_name.get("last")
    holder.by_name["last"] = x.detach()
    return x + 0.5 * last if last is not None and last.shape == x.shape else x


@operation
def caches_by_shape(holder: Holder, x: Tensor) -> Tensor:
    key = str(tuple(x.shape))
    if key not in holder.by_name:
        holder.by_name[key] = torch.linspace(0, 1, x.shape[-1], dtype=x.dtype)
    ramp: Tensor = holder.by_name[key]
    return x + ramp


@operation
def adds_an_attribute(holder: Holder, x: Tensor) -> Tensor:
    if not hasattr(holder, "seen"):
        holder.seen = True  # type: ignore[assignment]
    return x * 0.9


@operation
def normalises_in_training(holder: Holder, x: Tensor) -> Tensor:
    if x.shape[2] * x.shape[3] < 2:
        return x
    average, spread = holder.average, holder.spread
    return F.batch_norm(x, average.to(x.dtype), spread, training=True, momentum=0.5)


@operation
def moves_averages_by_hand(holder: Holder, x: Tensor) -> Tensor:
    holder.average.lerp_(x.detach().mean((0, 2, 3)).to(holder.average.dtype), 0.5)
    return x - holder.average.to(x.dtype)[:, None, None]


@operation
def scales_its_own_kernel(holder: Holder, x: Tensor) -> Tensor:
    holder.kernel.data.mul_(0.9)
    return F.conv2d(x, holder.kernel, padding=1)


@operation
def clips_its_own_kernel(holder: Holder, x: Tensor) -> Tensor:
    holder.kernel.data = torch.renorm(holder.kernel.data, 2, 0, 0.5)
    return F.conv2d(x, holder.kernel, padding=1)


# Looks at the whole batch, so that an image beside others comes out as another than alone.


@operation
def scales_by_the_maximum(holder: Holder, x: Tensor) -> Tensor:
    return x / x.abs().amax().clamp(min=0.1)


@operation
def centres_on_the_batch(holder: Holder, x: Tensor) -> Tensor:
    return x - x.mean((0, 2, 3), keepdim=True)


@operation
def compares_with_the_first(holder: Holder, x: Tensor) -> Tensor:
    return x - 0.5 * x[:1]


@operation
def adds_the_mean(holder: Holder, x: Tensor) -> Tensor:
    return x + x.mean().item()


# Only computes.


@operation
def convolves_by_function(holder: Holder, x: Tensor) -> Tensor:
    return torch.tanh(F.conv2d(x, holder.kernel, padding=1))


@operation
def turns(holder: Holder, x: Tensor) -> Tensor:
    return x.permute(0, 1, 3, 2)


@operation
def swaps_halves(holder: Holder, x: Tensor) -> Tensor:
    first, second = x.chunk(2, 1)
    return torch.cat([second, first], 1)


@operation
def reshapes(holder: Holder, x: Tensor) -> Tensor:
    return x.flatten(1).view(x.shape).contiguous(memory_format=torch.channels_last)


@operation
def chooses_by_mask(holder: Holder, x: Tensor) -> Tensor:
    return torch.where(x > 0, x, 0.1 * x)


@operation
def leaves_gradients_out(holder: Holder, x: Tensor) -> Tensor:
    with torch.inference_mode():
        return torch.tanh(x) + 0.1


@operation
def pads_by_parity(holder: Holder, x: Tensor) -> Tensor:
    return F.pad(x, (0, x.shape[-1] % 2, 0, x.shape[-2] % 2))
