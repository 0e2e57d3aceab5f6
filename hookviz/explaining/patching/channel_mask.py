"""Mask channels of one conv layer: a model in which they put out 0, to compare with the original.

The channels' kernels and biases are 0 and nothing else is changed, so the layer itself puts out 0
there, each time that it runs. A batch norm behind it makes a constant of that, as after the
ablation lens, whose edit at the layer's own output this equals (Meyes et al., "Ablation Studies in
Artificial Neural Networks", 2019). `hookviz.explaining.pruning.pruned_network` removes that
constant too.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from hookviz.capturing.layers import conv_names
from hookviz.errors import SettingError, UnknownLayerError, shorten
from hookviz.language.saying import say, say_count
from hookviz.models.derived_models import tensors_of, with_tensors
from hookviz.types import Model
from hookviz.wording import numbers_listed, read_numbers

_MAX_LENGTH = 1000  # letters
_MAX_CHANNELS = 10_000  # channels


@dataclass(frozen=True, slots=True)
class ChannelMask:
    """Channels of one conv layer that are masked: they put out 0.

    Attributes:
        layer: its name.
        channels: their numbers, in order.
    """

    layer: str
    channels: tuple[int, ...]

    def __str__(self) -> str:
        """Write the mask as `read_channel_mask` reads it."""
        return f"{self.layer}:{numbers_listed(self.channels)}"

    @property
    def words(self) -> str:
        """Number of channels and layer for people: ``"2 channels of features.3.squeeze"``."""
        count = len(self.channels)
        return say_count(
            "{count:,} channel of {layer}", "{count:,} channels of {layer}", count, layer=self.layer
        )


def read_channel_mask(text: str) -> ChannelMask:
    """Parse a mask as it is written in links, ``"stem.first.conv:0,3-7"``.

    Raises:
        SettingError: it names no layer and channels, or too many.

    >>> read_channel_mask("stem.first.conv:0,3-5").channels
    (0, 3, 4, 5)
    """
    layer, _, listed = text.rpartition(":")
    channels = read_numbers(listed.split(","), _MAX_CHANNELS) if len(text) <= _MAX_LENGTH else None
    if not layer or not channels:
        raise SettingError(
            say(
                "silenced={text!r} names no channels of a layer, at most {limit:,}: write "
                "them as in 'layer1.0.conv1:0,3-7'.",
                text=shorten(text, 60),
                limit=_MAX_CHANNELS,
            )
        )
    return ChannelMask(layer, channels)


def mask_channels(model: Model, mask: ChannelMask) -> Model:
    """Return the model with those channels masked; the model itself does not change.

    The layer's weights and bias are copies, and all other tensors are shared.

    Raises:
        UnknownLayerError: the network lacks that layer.
        SettingError: the layer is no convolution or lacks that channel, or its weights are not
            its own alone.
    """
    conv, own = _conv(model, mask), tensors_of(model)
    unmasked = {f"{mask.layer}.weight": _unmasked_weights(conv, mask)}
    if conv.bias is not None:
        unmasked[f"{mask.layer}.bias"] = _unmasked_channels(conv, mask)
    with torch.inference_mode(mode=False), torch.no_grad():  # ordinary tensors everywhere
        masked = {name: own[name].masked_fill(~stays, 0) for name, stays in unmasked.items()}
    return replace(
        with_tensors(model, masked),
        title=say("{model} without {channels}", model=model.title, channels=mask.words),
        weights=say("{weights}, without {channels}", weights=model.weights, channels=mask),
    )


def copied_bytes(model: Model, mask: ChannelMask) -> int:
    """Return how much memory `mask_channels` takes beside the model itself, in bytes.

    Raises:
        HookVizError: as `mask_channels` does.
    """
    return sum(tensor.nbytes for tensor in _conv(model, mask).state_dict().values())


def _conv(model: Model, mask: ChannelMask) -> _ConvNd:
    """Find the conv layer of a mask.

    Raises:
        HookVizError: as `mask_channels` does.
    """
    name, convs = mask.layer, conv_names(model.network)
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
    if mask.channels[-1] >= conv.out_channels:
        raise SettingError(
            say(
                "{layer} of {model} has no channel {channels}: its channels are 0 to {last}.",
                layer=shorten(name),
                model=model.title,
                channels=mask.channels[-1],
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


def _unmasked_channels(conv: _ConvNd, mask: ChannelMask) -> Tensor:
    """Return which output channels stay, bool ``(C_out,)``."""
    stays = torch.ones(conv.out_channels, dtype=torch.bool, device=conv.weight.device)
    stays[list(mask.channels)] = False
    return stays


def _unmasked_weights(conv: nn.Module, mask: ChannelMask) -> Tensor:
    """Return which weights stay, bool, in the weights' shape or one that broadcasts to it."""
    assert isinstance(conv, _ConvNd)
    stays = _unmasked_channels(conv, mask)
    sides = [1] * (conv.weight.ndim - 2)
    if not isinstance(conv, _ConvTransposeNd):  # (C_out, C_in / groups, …)
        return stays.reshape(-1, 1, *sides)
    by_group = stays.reshape(conv.groups, 1, -1)  # (C_in, C_out / groups, …), group by group
    by_group = by_group.expand(-1, conv.in_channels // conv.groups, -1)
    return by_group.reshape(conv.in_channels, -1, *sides)
