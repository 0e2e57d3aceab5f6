"""Define the frozen dataclasses that travel between modules; they hold data and derive from it.

Over 600 lines: a capture holds the input, addresses and activations, and whoever looks for what one
package hands to the next finds all of it here.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from hookviz import markup
from hookviz.errors import HookVizError, UnknownLayerError
from hookviz.language.saying import say, sentences
from hookviz.outputs.answer import Answer, Output, Reading, Top
from hookviz.weights_digest import fingerprint, settings_of, weights_digest
from hookviz.wording import times

Pixels = NDArray[np.uint8]

Progress = Callable[[float], None]
"""Told the share of a run that is done, 0…1; what it raises ends the run."""


def ignore(_share: float) -> None:
    """Do nothing with the progress."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Row of the catalog: what is known about a model before it is loaded.

    Attributes:
        name: what `load_model` takes, for example ``"resnet34"``.
        title: how people write it, for example ``"ResNet-34"``.
        family: the group it is listed under, for example ``"ResNet"``.
        parameters: how many numbers are learned.
        download_bytes: size of the weights file; 0 for weights that ship with HookViz.
        accuracy: of the pretrained weights in percent, by the source's own figures.
        trained_on: the data of that accuracy, for example ``"ImageNet-1K"``.
        min_size: the smallest input height and width in pixels that the architecture is meant for.
        on_disk: whether the pretrained weights are on this machine already.
        task: what it was trained for: ``"classification"``, ``"segmentation"``, ``"detection"`` or
            ``"video"``, which is to classify clips.
        metric: what `accuracy` is: ``"top-1"``, ``"mean IoU"`` or ``"box AP"``.
    """

    name: str
    title: str
    family: str
    parameters: int
    download_bytes: int
    accuracy: float
    trained_on: str
    min_size: int
    on_disk: bool
    task: str = "classification"
    metric: str = "top-1"


@dataclass(frozen=True, slots=True)
class Preprocess:
    """How a model wants its images: resize the shorter side, crop the centre, normalise.

    Attributes:
        resize: length of the shorter side in pixels after resizing.
        crop: side of the centre crop in pixels, the model's own input size.
        mean: per channel, subtracted from values in 0…1; one number per input channel.
        std: per channel, divided by.
        interpolation: ``"bilinear"`` or ``"bicubic"``.
        antialias: whether resizing filters; Pillow images are filtered always.
        frames: how many frames of video the model takes at once, ``(C, T, H, W)``; 0 of images.
    """

    resize: int
    crop: int
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: str = "bilinear"
    antialias: bool = True
    frames: int = 0

    @property
    def channels(self) -> int:
        """Number of input channels that the model takes: 3 for RGB, 1 for greyscale."""
        return len(self.mean)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the model's own input, ``(C, H, W)``, or ``(C, T, H, W)`` of video."""
        frames = (self.frames,) if self.frames else ()
        return self.channels, *frames, self.crop, self.crop


@dataclass(frozen=True, slots=True)
class InputImage:
    """Image as a person gave it, decoded and upright.

    Attributes:
        pixels: read-only RGB, uint8, ``(H, W, 3)``.
        name: file name or other label, for messages and titles.
        digest: hash of size and pixels; equal pictures have equal digests.
        animation: the file's bytes where that is an animation, of which `pixels` is the first
            frame, for networks that take video; else none.
        note: what was taken of a file that has several pages, more bands than colours or greys of
            more than 8 bits, and how to take another, in one line; empty of any other.
    """

    pixels: Pixels = field(repr=False)
    name: str
    digest: str
    animation: bytes = field(default=b"", repr=False)
    note: str = field(default="", repr=False)

    @property
    def height(self) -> int:
        """Rows of pixels."""
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        """Columns of pixels."""
        return int(self.pixels.shape[1])


@dataclass(frozen=True, slots=True)
class Crop:
    """Part of the original image that a model's input shows.

    The input's ``(height, width)`` pixels cover the rectangle from (left, top) to (right, bottom),
    measured in pixels of the original image from its top left corner. The rectangle can
    reach past the image: by a fraction of a pixel, because sizes are rounded when an image is
    resized, and by more where a model crops more than it resizes to and the rest is black.
    """

    left: float
    top: float
    right: float
    bottom: float
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class ModelInput:
    """Image made ready for one model.

    Attributes:
        tensor: what the network gets, float32 on the CPU, ``(1, C, H, W)``; float64 where the
            caller gave that; of video ``(1, C, T, H, W)``.
        picture: the same before normalisation, RGB uint8, ``(H, W, 3)``; None where the caller
            gave a tensor and there is no picture to show. Of video the middle frame.
        crop: where it lies in the original image; None where that is not known.
        digest: hash of the tensor's type, shape and bytes.
        frames: of video every frame as `picture` is one; of a still image, which stands for all of
            them, none.
        note: `InputImage.note` of the image.
    """

    tensor: Tensor = field(repr=False)
    picture: Pixels | None = field(repr=False)
    crop: Crop | None
    digest: str
    frames: tuple[Pixels, ...] = field(default=(), repr=False)
    note: str = field(default="", repr=False)


@dataclass(frozen=True, eq=False)
class Model:
    """Network ready to be looked at.

    A network of the catalog is frozen, and passes run on replicas of it. A network of one's own is
    run itself, under a lock, as it is when it is looked at.

    Attributes:
        name: catalog name, or a name given by `wrap`.
        title: how to show it.
        network: the module itself.
        fixed_digest: hash of the weights of a network that nobody changes; empty of one's own.
        weights: ``"pretrained"``, ``"random"``, or the name of the file they came from.
        categories: a label per class; empty where the classes have no names.
        preprocess: the steps from image to input tensor, or a function from an RGB Pillow image
            to a ``(C, H, W)`` tensor.
        min_size: the smallest input side in pixels that the network is meant for. The app offers
            none below it; a smaller one that is asked for, the network takes or refuses itself.
        input_shape: of a network that takes no square image: ``(C, L)`` of sound, ``(C, D, H, W)``
            of a volume, ``(C, H, W)`` of an oblong; empty where `preprocess` says it.
        is_guessed: whether `preprocess` is a guess, which the first pass bears out or corrects.
        train: whether it is run in the mode that it is in, and not in evaluation mode.
        example: its arguments where it takes more than an image, a tuple or a dict by name; see
            `wrap`.
        output: what its output means.
        replaced: tensors that stand for parameters and buffers in its passes, by name.
        edits: layers whose outputs are edited in each of its passes, and how; see `hookviz.edited`.
        weights_note: which weights were taken of a file that holds several, in one line.
        read: reads a path or bytes to a ``(C, H, W)`` float tensor, in place of `read_image` and
            `preprocess`; None where these do.
    """

    name: str
    title: str
    network: nn.Module = field(repr=False)
    fixed_digest: str
    weights: str
    categories: tuple[str, ...] = field(repr=False)
    preprocess: Preprocess | Callable[[Image.Image], Tensor]
    min_size: int = 1
    input_shape: tuple[int, ...] = ()
    is_guessed: bool = False
    train: bool = False
    example: Any = field(default=None, repr=False)
    replaced: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    edits: tuple[tuple[tuple[str, ...], Any], ...] = field(default=(), repr=False)
    output: Output = field(default_factory=Output)
    read: Callable[[Any], Tensor] | None = None
    weights_note: str = field(default="", repr=False)

    @property
    def digest(self) -> str:
        """Hash of every parameter and buffer, by name, as they are now; with edits one's own."""
        return f"{self.fixed_digest or weights_digest(self.network, self.replaced)}{self._edited}"

    def made(self, digest: str, name: str, weights: str) -> bool:
        """Return whether a file is of this network, given what it says of the one that made it.

        Files of versions before 1.1 have a digest of another kind, and go by the names.
        """
        if not digest.startswith("w"):
            return (name, weights) == (self.name, self.weights)
        return digest == self.digest

    @property
    def cache_key(self) -> str:
        """Key of what was computed with the weights as they are now, for this process; quick."""
        if self.fixed_digest:
            return f"{self.fixed_digest}{self._edited}{self._output}"
        mode = "-train" if self.train else ""
        example = "" if self.example is None else f"-{self.example.key}"
        changes = f"{self._replacement}{self._edited}"
        settings = f"-{settings_of(self.network):x}"
        return f"{fingerprint(self.network)}{settings}{mode}{example}{changes}{self._output}"

    @cached_property
    def _replacement(self) -> str:
        return f"-{secrets.token_hex(8)}" if self.replaced else ""

    @property
    def unedited(self) -> "Model":
        """The model without its edits."""
        return replace(self, edits=()) if self.edits else self

    @cached_property
    def _edited(self) -> str:
        return f"-{secrets.token_hex(8)}" if self.edits else ""

    def label(self, index: int) -> str:
        """Return what a class, or a number of the output, is called in the language spoken."""
        return Reading(self.output.kind).label(index, self.categories)

    @property
    def _output(self) -> str:
        return f"-{self.output.key}" if self.output.is_said and self.output.key else ""

    @property
    def note(self) -> str:
        """What has to be known about all its numbers; empty where there is nothing."""
        if self.train or not any(map(_differs_in_training, self.network.modules())):
            return self.weights_note
        return say(
            "It is in training mode and is shown in evaluation mode: dropout is off, and batch "
            "norms take their running statistics. wrap(network, train=True) shows it as it stands."
        )


def _differs_in_training(module: nn.Module) -> bool:
    """Return whether a module is in training mode, and its forward asks for that."""
    code = getattr(getattr(type(module), "forward", None), "__code__", None)
    return module.training and code is not None and "training" in code.co_names


@dataclass(frozen=True, order=True, slots=True)
class ActivationKey:
    r"""Key of an activation: which layer, which of its calls, which of its outputs.

    Written ``layer``, ``layer#1`` for the second call, and ``layer[0]`` or ``layer#1[mask]`` for
    one part of a tuple, list or dict. A ``#``, ``[``, ``]`` or ``\`` in a name itself is written
    with a ``\`` before it. Written so, calls count from 0, as Python does; `in_words` counts them
    from 1, as the page does.
    """

    layer: str
    call: int = 0
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        call = f"#{self.call}" if self.call else ""
        path = "".join(f"[{_plainly(key)}]" for key in self.path)
        return f"{_plainly(self.layer)}{call}{path}"

    @property
    def in_words(self) -> str:
        """The address as people read it, its calls counted from 1.

        >>> from hookviz.types import ActivationKey
        >>> ActivationKey("relu").in_words, ActivationKey("relu", 1, ("mask",)).in_words
        ('relu', 'relu, call 2[mask]')
        """
        if not self.call:
            return str(self)
        path = "".join(f"[{_plainly(key)}]" for key in self.path)
        return (
            say("{layer}, call {number}", layer=_plainly(self.layer), number=self.call + 1) + path
        )

    @classmethod
    def read(cls, text: str) -> "ActivationKey":
        """Read a written address; any other text stands for the layer of that name.

        >>> from hookviz.types import ActivationKey
        >>> ActivationKey.read("layer#1[mask]")
        ActivationKey(layer='layer', call=1, path=('mask',))
        """
        written = _ADDRESS.fullmatch(text)
        if written is None:
            return cls(text)
        layer, call, path = written.groups()
        keys = tuple(map(_as_it_is, _KEY.findall(path)))
        return cls(_as_it_is(layer), int(call or 0), keys)


_SIGN = r"(?:[^\\#\[\]]|\\.)"  # of a name, in an address
_KEY = re.compile(rf"\[({_SIGN}*)\]")
_ADDRESS = re.compile(rf"({_SIGN}*)(?:#([0-9]{{1,9}}))?((?:\[{_SIGN}*\])*)", re.DOTALL)


def _plainly(name: str) -> str:
    """Return a name with a backslash before the signs that mean something in an address."""
    return re.sub(r"([\\#\[\]])", r"\\\1", name)


def _as_it_is(written: str) -> str:
    return re.sub(r"\\(.)", r"\1", written, flags=re.DOTALL)


FIRST, LAST, TOKENS, VECTORS = "channels first", "channels last", "tokens", "vectors"
WINDOWS = "windows"
"""Orders of the axes of what a layer puts out, see `Layout`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor that a layer puts out lies: which of its axes are channels, rows and columns.

    Attributes:
        order: ``"channels first"``, ``(C, H, W)``; ``"channels last"``, ``(H, W, C)``;
            ``"tokens"``, ``(T, C)``, a token for each cell, row by row, behind prefix tokens;
            ``"windows"``, ``(N, T, C)`` or ``(N, h, w, C)``, parts of the map row by row, with
            their cells row by row, which may reach past it, and in one pass over several images
            stand behind each other;
            ``"vectors"``, ``(…, C)``, of which nobody knows which axes are rows and columns; empty
            where nothing is known.
        batch: whether a batch stands before these axes.
        prefix_tokens: how many tokens stand before those of the cells, such as a class token.
        grid: rows and columns of the cells that tokens stand for, or those of all windows.
        window: rows and columns of a window.
        shift: how many rows the map was moved up, and columns to the left, before it was cut.
        strided: whether a window has cells from all over the map, in steps of as many cells as
            there are windows along it.
        frames: of video with channels last, ``(T, H, W, C)``, how many frames; 0 of one image.
    """

    order: str = ""
    batch: bool = True
    prefix_tokens: int = 0
    grid: tuple[int, int] = (0, 0)
    window: tuple[int, int] = (0, 0)
    shift: tuple[int, int] = (0, 0)
    strided: bool = False
    frames: int = 0

    @property
    def last(self) -> bool:
        """Whether the last axis is the channels."""
        return self.order in {LAST, TOKENS, WINDOWS, VECTORS}

    @property
    def windows(self) -> tuple[int, int]:
        """How many windows there are below each other, and beside each other."""
        (rows, columns), (high, wide) = self.grid, self.window
        return -(-rows // high), -(-columns // wide)

    @property
    def word(self) -> str:
        """The order as `LayerInfo` has it: ``"unknown"`` where rows and columns are not known."""
        return "unknown" if self.order in {"", VECTORS} else self.order

    def of(self, shape: tuple[int, ...]) -> "Layout":
        """Return how a tensor of this shape, without the batch, lies that should lie so.

        A network that takes another way for another image may put out something else there.
        """
        if self.order == LAST and len(shape) != (4 if self.frames else 3):
            return replace(self, order=VECTORS)
        if self.order == TOKENS:
            count = self.prefix_tokens + prod(self.grid)
            if len(shape) != 2 or shape[0] != count:
                return Layout(VECTORS, self.batch)
        if self.order == WINDOWS and (
            len(shape) not in {3, 4}
            or shape[0] != prod(self.windows)
            or shape[1:-1] not in {self.window, (prod(self.window),)}
        ):
            return Layout(VECTORS, self.batch)
        return self

    def maps(self, values: Tensor) -> Tensor:
        """View values as ``(C, H, W)``, with or without a batch before; what is no map as it is."""
        if self.order == LAST:
            return values.movedim(-1, -4 if self.frames else -3)
        if self.order == TOKENS:
            tokens = values[..., self.prefix_tokens :, :]
            cells: Tensor = tokens.unflatten(-2, self.grid)  # type: ignore[no-untyped-call]
            return cells.movedim(-1, -3)
        return self._put_back(values) if self.order == WINDOWS else values

    def batch_maps(self, output: Tensor) -> Tensor:
        """View what a layer puts out for N images as ``(N, C, H, W)``, or as it is as `maps`."""
        if self.order != WINDOWS:
            return self.of(tuple(output.shape[1:])).maps(output)
        windows = prod(self.windows)
        if len(output) % windows:
            return output
        images = output.reshape(-1, windows, *output.shape[1:])
        return torch.stack([self._put_back(image) for image in images])

    def _put_back(self, values: Tensor) -> Tensor:
        """Put the windows of one image where they lie, ``(C, H, W)``."""
        (down, across), (high, wide) = self.windows, self.window
        parts = values.reshape(down, across, high, wide, values.shape[-1])
        order = (4, 2, 0, 3, 1) if self.strided else (4, 0, 2, 1, 3)
        whole = parts.permute(order).reshape(-1, down * high, across * wide)
        rows, columns = self.grid
        whole = whole[:, :rows, :columns]  # what reaches past the map was added after it was moved
        return whole.roll(self.shift, (1, 2)) if any(self.shift) else whole

    def map_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the maps, ``(C, H, W)``, of a tensor's without its batch."""
        if self.order == LAST:
            return (shape[-1], *shape[:-1])
        return (shape[-1], *self.grid) if self.order in {TOKENS, WINDOWS} else shape


UNKNOWN = Layout()


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """Layer of a model as plain data, as it was on one forward pass.

    Attributes:
        name: the module's dotted path, for example ``"layer1.0.conv1"``.
        kind: the module's class, for example ``"Conv2d"``.
        index: its place among the listed layers, in order of execution, from 0.
        stage: the top-level part of the network that it belongs to, for example ``"layer1"``.
        calls: how many times one forward pass runs it.
        input_shape: of its first call's first tensor without the batch, ``(C, H, W)``.
        output_shape: of its first call's first tensor without the batch, ``(C, H, W)``; so too of
            a layer that puts its channels last, or tokens, whose cells it counts.
        parameters: how many numbers it learned, bias included.
        kernel_size, stride, padding, dilation: (vertical, horizontal) in pixels of its own input;
            empty where the layer has none. Padding can be the word ``"same"`` or ``"valid"``.
        groups: into how many groups its channels are split; 1 for an ordinary convolution.
        bias: whether it adds a bias; of convolutions and linear layers.
        layout: how the layer itself has what it puts out: ``"channels first"``, ``(C, H, W)``,
            ``"channels last"``, ``(H, W, C)``, ``"tokens"``, ``(T, C)``, or ``"windows"``,
            ``(N, T, C)``, of the map; ``"unknown"`` where nobody knows which of its axes are rows
            and columns, so that there is no map; empty of what has one axis, or none.
        prefix_tokens: how many of its tokens stand for no cell, such as a class token.
        is_function: whether it is no module, but a function that a block's code calls, such as
            `torch.relu`; `kind` is then the class of module that does the same.
        steps: of recurrent layers and attention, for how many steps or tokens a call uses its
            parameters; 0 of other layers.
        frames: how many rows of its batch one input makes, as a clip whose frames are folded into
            it; 1 of an image. `list_layers` has them in front of `output_shape`, as captures do.
    """

    name: str
    kind: str
    index: int
    stage: str
    calls: int
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    parameters: int
    kernel_size: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] | str = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    bias: bool = False
    layout: str = ""
    prefix_tokens: int = 0
    is_function: bool = False
    steps: int = 0
    frames: int = 1

    @property
    def multiply_adds(self) -> int:
        """Number of multiply-adds of one call; adding a bias counts as one more.

        A convolution uses its kernel, ``C_in · C_out / groups · kernel`` numbers, once at each cell
        of its output (a transposed one at each cell of its input), and its bias once at each cell
        of its output; a linear layer uses its matrix once for each vector that it is given. A
        recurrent layer and an attention layer use their parameters at each step. Others count as
        0. Of parametrised layers the weights count as they are used, not as they are
        stored. torchinfo counts the same, but for linear layers on several vectors.
        """
        if self.steps:
            return self.steps * self.parameters
        if self.kernel_size:
            put_out = self.output_shape[-1 - len(self.kernel_size) :]  # of one frame
            channels = self.input_shape[0] * put_out[0] // self.groups
            cells = self.input_shape if "Transpose" in self.kind else put_out
            products = channels * prod(self.kernel_size) * prod(cells[1:])
            return self.frames * (products + prod(put_out) * self.bias)
        outputs = prod(self.output_shape)
        if "Linear" in self.kind and self.input_shape:
            has_maps = self.layout in {LAST, TOKENS, WINDOWS}
            outputs += self.prefix_tokens * self.output_shape[0] if has_maps else 0
            return outputs * self.input_shape[0 if has_maps else -1] + outputs * self.bias
        return 0


@dataclass(frozen=True, eq=False, slots=True)
class Activation:
    """Tensor that one call of one layer put out for one image.

    Attributes:
        address: the layer, the call and the part of the output.
        raw: float32 on the CPU, as the layer put it out, the batch dimension removed.
        layout: how that lies.
    """

    address: ActivationKey
    raw: Tensor = field(repr=False)
    layout: Layout = UNKNOWN

    @property
    def values(self) -> Tensor:
        """The maps, ``(C, H, W)``: `raw` itself, or a view of it with its axes in this order.

        Where rows and columns are not known it is `raw`.
        """
        return self.layout.maps(self.raw)

    @property
    def channels_last(self) -> bool:
        """Whether the last dimension of `values` is the channels: they are vectors, and no maps."""
        return self.layout.order == VECTORS

    @property
    def layer(self) -> str:
        """The layer's name."""
        return self.address.layer

    @property
    def nbytes(self) -> int:
        """Number of bytes of memory that the values take."""
        return self.raw.nelement() * self.raw.element_size()


@dataclass(frozen=True, eq=False)
class Capture(Mapping[str, Activation]):
    """Activations of one image in one model, by written address.

    ``capture["conv1"]`` is the layer's first call; iterating gives written addresses in order of
    execution.

    Attributes:
        model: catalog name of the model.
        digest: key of the model's weights, `Model.cache_key`.
        weights: ``"pretrained"``, ``"random"`` or a file's name.
        model_input: the input with its picture and crop.
        activations: what was recorded, in order of execution.
        answer: what the network answered; None where the run ended early, or nothing in its output
            is one row of scores.
        categories: a label per class.
        seconds: wall time of the run, 0.0 where everything came from the cache.
        forward_passes: how many times the network ran for it.
        layer_inputs: what the captured layers were given, in order of execution; only where that
            was asked for. The path of an address is the argument's number, ``conv1[0]``.
        made_by: returns the model as long as somebody keeps its network: a capture holds none in
            memory. None in a copy, and in what was pickled.
        note: what has to be known about the numbers: that the network was given in training mode
            and ran in evaluation mode, and `InputImage.note`; empty where there is nothing.
        unanswered: why there is no answer; empty where the run ended early.
    """

    model: str
    digest: str
    weights: str
    model_input: ModelInput
    activations: tuple[Activation, ...] = field(repr=False)
    answer: Answer | None = field(repr=False)
    categories: tuple[str, ...] = field(repr=False)
    seconds: float
    forward_passes: int
    layer_inputs: tuple[Activation, ...] = field(default=(), repr=False)
    made_by: Callable[[], Model | None] | None = field(default=None, repr=False)
    note: str = ""
    unanswered: str = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "made_by": None}

    @property
    def logits(self) -> Tensor | None:
        """The answer's scores before any softmax, float32 on the CPU, ``(classes,)``."""
        return None if self.answer is None else self.answer.scores

    @property
    def input(self) -> Tensor:
        """Input that the network saw: float32 on the CPU, ``(1, C, H, W)``."""
        return self.model_input.tensor

    @cached_property
    def _by_address(self) -> dict[str, Activation]:
        return {str(activation.address): activation for activation in self.activations}

    def __getitem__(self, address: str) -> Activation:
        """Return the activation at a written address, or the first that a layer put out.

        Raises:
            UnknownLayerError: nothing was recorded there; also a `KeyError`, so that ``in`` and
                ``get`` work as on any mapping.
        """
        activation = self._by_address.get(
            address, self._by_address.get(str(ActivationKey(str(address))))
        )
        parts = str(address).split(".")
        if activation is None and "_orig_mod" in parts:  # as torch.compile names layers
            return self[".".join(part for part in parts if part != "_orig_mod")]
        if activation is None:
            raise MissingAddressError(say("captured layer"), address, self._by_address)
        return activation

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_address)

    def __len__(self) -> int:
        return len(self._by_address)

    def calls(self, layer: str) -> tuple[Activation, ...]:
        """Return every recorded activation of `layer`: all calls, all parts of nested outputs."""
        return tuple(activation for activation in self.activations if activation.layer == layer)

    def inputs(self, layer: str) -> tuple[Activation, ...]:
        """Return every tensor that `layer` was given, all calls and all arguments.

        Raises:
            UnknownLayerError: none was recorded; ``capture(…, inputs=True)`` records them.

        >>> model = hookviz.load_model("shapesnet")
        >>> cap = hookviz.capture(model, "assets/samples/star.jpg", inputs=True)
        >>> [str(each.address) for each in cap.inputs("stem.first.conv")]
        ['stem.first.conv[0]']
        >>> cap.inputs("stem.first.conv")[0].values.shape  # (C, H, W)
        torch.Size([3, 128, 128])
        """
        taken = tuple(activation for activation in self.layer_inputs if activation.layer == layer)
        if not taken:
            known = {activation.layer for activation in self.layer_inputs}
            raise UnknownLayerError(say("layer whose inputs were captured"), layer, known)
        return taken

    def likeliest(self, count: int = 5) -> tuple[tuple[int, float], ...]:
        """Return the numbers of the `count` likeliest classes, each with its value.

        That is the probability, of maps the share of the pixels, and the score itself where nobody
        said what the network's output means: see `hookviz.Output`.

        Raises:
            HookVizError: the run kept no answer, or the answer has no classes.

        >>> model = hookviz.load_model("shapesnet")
        >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
        >>> [(model.categories[index], f"{chance:.0%}") for index, chance in cap.likeliest(1)]
        [('star', '99%')]
        """
        if self.answer is None:
            raise HookVizError(
                self.unanswered
                or say(
                    "This capture of {model} holds no class scores: the run ended at its last "
                    "wanted layer. Capture with logits=True for scores.",
                    model=self.model,
                )
            )
        return self.answer.likeliest(count)

    def predictions(self, count: int = 5) -> tuple[tuple[str, float], ...]:
        """Return the `count` likeliest classes, as the weights call them, with their values.

        Raises:
            HookVizError: as `likeliest`.

        >>> model = hookviz.load_model("shapesnet")
        >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
        >>> [(label, f"{chance:.0%}") for label, chance in cap.predictions(1)]
        [('star', '99%')]
        """
        names = self.categories
        return tuple(
            (names[index] if index < len(names) else self.label(index), value)
            for index, value in self.likeliest(count)
        )

    def top(self, count: int = 5) -> tuple[Top, ...]:
        """Return the `count` highest values of the answer as they are shown; none without one."""
        return () if self.answer is None else self.answer.top(count, self.categories)

    def label(self, index: int) -> str:
        """Return what a class, or a number of the answer, is called in the language spoken."""
        reading = Reading() if self.answer is None else self.answer.reading
        return reading.label(index, self.categories)

    def _repr_html_(self) -> str:
        """Return the model, the likeliest classes and what was recorded, for a notebook."""
        seen = say(
            "{weights} weights, input {shape}",
            weights=self.weights,
            shape=times(self.input.shape[1:]),
        )
        html = markup.element("p", f"{self.model}: {seen}")
        if self.note:
            html += markup.element("p", self.note)
        if self.answer is not None and (top := self.top()):
            html += markup.table(("class", self.answer.word), [(x.name, x.text) for x in top])
        rows = [(address, times(found.values.shape)) for address, found in self.items()]
        recorded = markup.table(("activation", "shape"), rows)
        return html + markup.details(f"{len(rows):,} recorded", recorded, is_open=len(rows) <= 30)


class MissingAddressError(UnknownLayerError, KeyError):
    """`UnknownLayerError` that is a `KeyError`, too, so that a mapping may raise it.

    Where calls are counted, it says how: an address begins at 0, and the page at 1.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        super().__init__(kind, name, known)
        several = next(filter(_is_later_call, (*self.nearest, *known)), None)
        if several is not None and _is_later_call(self.name):
            read = ActivationKey.read(several)
            told = say(
                "An address counts calls from 0: {address!r} is {words}.",
                address=several,
                words=read.in_words,
            )
            self.args = (sentences(str(self.args[0]), told),)

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted representation


def _is_later_call(address: str) -> bool:
    return ActivationKey.read(address).call > 0
