"""Replace parameters for a block, and put the very same back afterwards."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from hookviz.errors import SettingError, UnknownNameError, shorten
from hookviz.hooking.modules import module_named, network_of, plain_name
from hookviz.types import Model
from hookviz.wording import times

Replacement = Tensor | Callable[[Tensor], Tensor]


@contextmanager
def replace_parameters(
    network: nn.Module | Model, parameters: Mapping[str, Replacement]
) -> Iterator[None]:
    """Run with other parameters, in a block or a decorated function.

    Afterwards the network has the same `torch.nn.Parameter` objects as before, in which nothing
    was written, on every way out. A parameter that several layers share is replaced in all of
    them, and for every thread.

    Args:
        network: as of `observe`.
        parameters: by the names of ``network.named_parameters()``, tensors of the same shape, or
            functions that make one of the parameter's values. They are copied, to the
            parameter's type and device, so that training in the block writes to nobody's tensor;
            a `torch.nn.Parameter` is used as it is, and keeps its gradient.

    Raises:
        UnknownNameError: the network has no such parameter, with the nearest names.
        ModelError: `network` is no module.
        SettingError: a value is no tensor or of another shape, or a shared parameter gets two.

    >>> network = torch.nn.Linear(2, 2)
    >>> with hookviz.replace_parameters(network, {"weight": torch.eye(2), "bias": torch.zeros(2)}):
    ...     network(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    """
    given, network = network, network_of(network)
    listed = network.named_parameters(remove_duplicate=False)
    every = {plain_name(name): parameter for name, parameter in listed}
    new: dict[int, tuple[str, nn.Parameter]] = {}
    for given_name, value in parameters.items():
        name = given_name if given_name in every else plain_name(given_name, given)
        if name not in every:
            raise UnknownNameError(f"parameter in this {type(network).__name__}", name, every)
        original = every[name]
        if id(original) in new:
            raise SettingError(
                f"{new[id(original)][0]} and {name} are one parameter of this "
                f"{type(network).__name__}; give it one value."
            )
        new[id(original)] = name, _parameter(name, value, original)
    with ExitStack() as originals:
        for name, original in every.items():
            if id(original) in new:
                owner, _, attribute = name.rpartition(".")
                module = module_named(network, owner)
                # Not into `_parameters`: recurrent layers keep a list of their weights beside it.
                originals.callback(setattr, module, attribute, original)
                setattr(module, attribute, new[id(original)][1])
        yield


def _parameter(name: str, value: Replacement, original: nn.Parameter) -> nn.Parameter:
    replacement = value(original.detach().clone()) if callable(value) else value
    if not isinstance(replacement, Tensor):
        raise SettingError(f"{name} needs a tensor, not {shorten(repr(replacement))}.")
    if replacement.shape != original.shape:
        raise SettingError(
            f"{name} has the shape {times(original.shape) or 'of one number'}; a tensor of "
            f"{times(replacement.shape) or 'one number'} can't stand for it."
        )
    if isinstance(replacement, nn.Parameter):
        return replacement
    values = replacement.detach().to(original.device, original.dtype, copy=True)
    return nn.Parameter(values, requires_grad=original.requires_grad)
