"""A network with channels of one conv layer silent: the same one before and after an ablation.

The channels' kernels and biases are 0 and nothing else is changed, so the layer itself puts out 0
there, each time that it runs. A batch norm behind it makes a constant of that, as after the
ablation lens, whose edit at the layer's own output this equals (Meyes et al., "Ablation Studies in
Artificial Neural Networks", 2019). `hookviz.explaining.pruned_network` takes the constant out, too.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.layers import conv_names
from hookviz.errors import ModelError, SettingError, UnknownLayerError, shorten
from hookviz.explaining.pruned_network import masked
from hookviz.hooking.forward_pass import own_shape
from hookviz.hooking.purity import is_pure
from hookviz.language.saying import say, say_count
from hookviz.models.digest import network_digest
from hookviz.types import Model
from hookviz.wording import numbers_listed, read_numbers

_LONGEST = 1000  # letters
_MOST = 10_000  # channels


@dataclass(frozen=True, slots=True)
class ChannelMask:
    """Which channels of which conv layer are silent.

    Attributes:
        layer: its name.
        channels: their numbers, in order.
    """

    layer: str
    channels: tuple[int, ...]

    def __str__(self) -> str:
        """As `read_channel_mask` reads it."""
        return f"{self.layer}:{numbers_listed(self.channels)}"

    @property
    def words(self) -> str:
        """What is silent: ``"2 channels of features.3.squeeze"``."""
        count = len(self.channels)
        return say_count(
            "{count:,} channel of {layer}", "{count:,} channels of {layer}", count, layer=self.layer
        )


def read_channel_mask(text: str) -> ChannelMask:
    """What ``"stem.first.conv:0,3-7"`` asks for.

    Raises:
        SettingError: it names no layer and channels, or too many.

    >>> read_channel_mask("stem.first.conv:0,3-5").channels
    (0, 3, 4, 5)
    """
    layer, _, listed = text.rpartition(":")
    channels = read_numbers(listed.split(","), _MOST) if len(text) <= _LONGEST else None
    if not layer or not channels:
        raise SettingError(
            say(
                "silenced={text!r} names no channels of a layer, at most {limit:,}: write "
                "them as in 'layer1.0.conv1:0,3-7'.",
                text=shorten(text, 60),
                limit=_MOST,
            )
        )
    return ChannelMask(layer, channels)


@torch.inference_mode(mode=False)  # its tensors are ordinary ones wherever it is called
def silenced(model: Model, silence: ChannelMask) -> Model:
    """The model with those channels silent; the model itself stays as it is.

    The layer's weights and bias are copies, and all other tensors are shared, unless the network
    does more than compute.

    Raises:
        UnknownLayerError: the network has no such layer.
        SettingError: the layer is no convolution or has no such channel, or its weights are not
            its own alone.
    """
    conv = _conv(model, silence)
    _shares(model)
    stays = {id(conv.weight): _kernels_that_stay(conv, silence)}
    if conv.bias is not None:
        stays[id(conv.bias)] = _others(conv, silence)
    network = masked(model.network, stays)
    return replace(
        model,
        title=say("{model} without {channels}", model=model.title, channels=silence.words),
        network=network,
        digest=network_digest(network),
        weights=say("{weights}, without {channels}", weights=model.weights, channels=silence),
    )


def new_bytes(model: Model, silence: ChannelMask) -> int:
    """How much memory `silenced` takes beside the model itself.

    Raises:
        HookVizError: as `silenced` does.
    """
    conv = _conv(model, silence)
    parts = conv if _shares(model) else model.network
    return sum(tensor.nbytes for tensor in parts.state_dict().values())


def _shares(model: Model) -> bool:
    """Whether a network like it may share its tensors, of which a pass must have been watched."""
    if not is_pure(model.network):
        with suppress(ModelError):  # one that takes no such input is copied whole
            layer_trace(model, own_shape(model))
    return is_pure(model.network)


def _conv(model: Model, silence: ChannelMask) -> _ConvNd:
    """The layer.

    Raises:
        HookVizError: as `silenced` does.
    """
    name, convs = silence.layer, conv_names(model.network)
    modules = dict(model.network.named_modules())
    conv = modules.get(name)
    if conv is None:
        raise UnknownLayerError(say("conv layer"), name, convs)
    if not isinstance(conv, _ConvNd):
        raise SettingError(
            say(
                "{layer} of {model} is a {kind}, and channels are silenced in a conv layer: "
                "choose one of those.",
                layer=shorten(name),
                model=model.title,
                kind=type(conv).__name__,
            )
        )
    if silence.channels[-1] >= conv.out_channels:
        raise SettingError(
            say(
                "{layer} of {model} has no channel {channels}: its channels are 0 to {last}.",
                layer=shorten(name),
                model=model.title,
                channels=silence.channels[-1],
                last=conv.out_channels - 1,
            )
        )
    own = [conv._parameters.get(key) for key in ("weight", "bias")]
    if own[0] is None or (conv.bias is not None and own[1] is None):
        raise SettingError(
            say(
                "The weights of {name} of {model} are computed anew at each pass, so none of "
                "them can be set to 0: choose another conv layer.",
                name=shorten(name),
                model=model.title,
            )
        )
    ids = {id(tensor) for tensor in own if tensor is not None}
    for other, module in modules.items():
        if module is not conv and ids.intersection(map(id, module._parameters.values())):
            raise SettingError(
                say(
                    "{layer} of {model} has its weights in common with {other_layer}, which would "
                    "fall silent, too: choose another conv layer.",
                    layer=shorten(name),
                    model=model.title,
                    other_layer=shorten(other),
                )
            )
    return conv


def _others(conv: _ConvNd, silence: ChannelMask) -> Tensor:
    """Which output channels stay, ``(C_out,)``."""
    stays = torch.ones(conv.out_channels, dtype=torch.bool, device=conv.weight.device)
    stays[list(silence.channels)] = False
    return stays


def _kernels_that_stay(conv: nn.Module, silence: ChannelMask) -> Tensor:
    """Which weights stay, in the shape of the weights or one that is repeated to it."""
    assert isinstance(conv, _ConvNd)
    stays = _others(conv, silence)
    sides = [1] * (conv.weight.ndim - 2)
    if not isinstance(conv, _ConvTransposeNd):  # (C_out, C_in / groups, …)
        return stays.reshape(-1, 1, *sides)
    each = stays.reshape(conv.groups, 1, -1)  # (C_in, C_out / groups, …), group by group
    each = each.expand(-1, conv.in_channels // conv.groups, -1)
    return each.reshape(conv.in_channels, -1, *sides)
