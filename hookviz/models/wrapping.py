"""Wrap a person's own module as a `Model`: name its input, its labels, and what it is called.

A module whose layers no hook can see is refused, with advice. The meaning of the network's output
is stated by its last layer, or by the library that it is from. A network of several inputs is
called with the image alone, the others as an example gave them.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn, TypeAlias
from weakref import ref

import torch
from PIL import Image
from torch import Tensor, nn
from torch.jit._trace import TracedModule
from torch.nn.parameter import is_lazy
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.errors import ModelError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.modules import network_of
from hookviz.images.preprocess import as_function
from hookviz.language.saying import joined, say
from hookviz.models.guessing import (
    Guess,
    guess_of,
    is_of,
    normalises_itself,
    stated_input,
    stated_labels,
)
from hookviz.outputs.answer import (
    BOXES,
    EMBEDDING,
    LOGITS,
    MAPS,
    MULTILABEL,
    NUMBER,
    PROBABILITIES,
    Output,
    Part,
    as_output,
)
from hookviz.types import Model, Preprocess
from hookviz.wording import times

Example: TypeAlias = tuple[Any, ...] | list[Any] | Mapping[str, Any]
"""Positional arguments of a network's ``forward``, or those that are given by name."""

_DIMENSIONS = (4, 5, 3)  # of an image, a volume or sound with the batch; likeliest first


@dataclass(frozen=True, eq=False)
class ExampleInput:
    """Arguments of a network, one of which is the image.

    Attributes:
        arguments: as the example has them.
        image: the tensor in them whose place every later image takes, with its batch.
        position: that tensor; or the list around it, for a network that takes a list of images.
        key: of this example in a cache.
    """

    arguments: Example
    image: Tensor
    position: Tensor | Sequence[Tensor]
    key: str = field(default_factory=partial(secrets.token_hex, 8))

    def call(self, forward: Callable[..., Any], images: Tensor) -> Any:
        """Call a network's forward with images in the place of the example's."""
        filled = self._filled(self.arguments, images)
        return forward(**filled) if isinstance(filled, Mapping) else forward(*filled)

    def _filled(self, part: Any, images: Tensor) -> Any:
        if part is self.position:
            return images if isinstance(part, Tensor) else [*images]
        if isinstance(part, Tensor):
            return part.to(images.device, copy=True)
        if isinstance(part, Mapping):
            return {key: self._filled(value, images) for key, value in part.items()}
        if isinstance(part, tuple | list):
            several = [self._filled(value, images) for value in part]
            return type(part)(*several) if hasattr(part, "_fields") else type(part)(several)
        return part


def example_input(example: Example) -> ExampleInput:
    """Find an example's image: its first float tensor of ``(1, C, H, W)``.

    Or else of ``(1, C, D, H, W)``, or else a list of one ``(C, H, W)``, or else of ``(1, C, L)``.

    Raises:
        ModelError: the example has no such tensor.
    """
    if not isinstance(example, tuple | list | Mapping):
        raise ModelError(
            say(
                "example={name} is neither a tuple of positional arguments nor a dict of "
                "arguments by name; for one tensor write example=(tensor,).",
                name=shorten(repr(type(example).__name__)),
            )
        )
    tensors = [tensor for _, tensor in hooks.tensors_in(example) if tensor.is_floating_point()]
    listed = None if any(tensor.ndim in {4, 5} for tensor in tensors) else _list_of_one(example)
    if listed is not None:
        return ExampleInput(example, listed[0][None], listed)
    image = _image([tensor for _, tensor in hooks.tensors_in(example)])
    return ExampleInput(example, image, image)


def _list_of_one(example: Example) -> Sequence[Tensor] | None:
    """Find a list of one ``(C, H, W)`` tensor, as torchvision's detectors take it."""
    parts: Iterable[Any] = example.values() if isinstance(example, Mapping) else example
    for part in parts:
        if isinstance(part, list | tuple) and len(part) == 1 and not hasattr(part, "_fields"):
            image = part[0]
            if isinstance(image, Tensor) and image.ndim == 3 and len(image) > 1:
                return part
    return None


def _image(tensors: list[Tensor]) -> Tensor:
    for dimensions in _DIMENSIONS:
        for tensor in tensors:
            if tensor.ndim == dimensions and tensor.is_floating_point():
                if len(tensor) == 1:
                    return tensor
                raise ModelError(
                    say(
                        "The example's image is {shape}, {count} images; give an example of "
                        "one, (1, C, H, W), or [tensor] of (C, H, W) where the network takes a "
                        "list.",
                        shape=times(tensor.shape),
                        count=len(tensor),
                    )
                )
    contents = joined(
        say("{shape} of {dtype}", shape=times(tensor.shape), dtype=tensor.dtype)
        for tensor in tensors
    )
    raise ModelError(
        say(
            "The example has no image in it ({contents}); one argument has to be a float "
            "tensor of (1, C, H, W), or of (1, C, D, H, W) or (1, C, L).",
            contents=contents or say("no tensor at all"),
        )
    )


_wrapped: MutableMapping[nn.Module, ref[Model]] = WeakIdKeyDictionary()
_QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.nn.quantized")
_LAST_LAYERS = {
    nn.Softmax: PROBABILITIES,
    nn.Softmax2d: PROBABILITIES,
    nn.Sigmoid: PROBABILITIES,
    nn.LogSoftmax: LOGITS,
}
_TASKS = {
    "ForImageClassification": LOGITS,
    "ForImageClassificationWithTeacher": LOGITS,
    "ForVideoClassification": LOGITS,
    "ForSemanticSegmentation": MAPS,
    "ForObjectDetection": BOXES,
}
_PROBLEMS = {
    "single_label_classification": LOGITS,
    "multi_label_classification": MULTILABEL,
    "regression": NUMBER,
}
_YOLO = {  # ultralytics: probabilities beside logits; boxes with a row for each class behind 4
    "ClassificationModel": Output(PROBABILITIES, 0, is_said=False),
    "DetectionModel": Output(BOXES, lambda out: out[0][:, 4:].amax(-1), is_said=False),
}
_FAMILIES = {
    "torchvision.models.segmentation": MAPS,
    "torchvision.models.detection": BOXES,
    "torchvision.models": LOGITS,
    "segmentation_models_pytorch": MAPS,
}


def as_model(network: nn.Module | Model) -> Model:
    """Return the `Model` itself, or one around a module; the same one while it is referenced.

    Raises:
        ModelError: it is neither, or a module that `wrap` refuses.
    """
    if isinstance(network, Model):
        return network
    module = network_of(network)
    known = _wrapped.get(module)
    model = None if known is None else known()
    if model is None:
        model = wrap(module)
        _wrapped[module] = ref(model)
    return model


def wrap(
    module: nn.Module | Model,
    preprocess: Preprocess | Callable[[Image.Image], Tensor] | Any = None,
    categories: Sequence[str] = (),
    *,
    processor: Any = None,
    name: str | None = None,
    example: Example | None = None,
    train: bool = False,
    output: Output | Part = None,
    read: Callable[[Any], Tensor] | None = None,
) -> Model:
    """Wrap a person's own network as a `Model`. It runs nothing and copies nothing.

    Every function that takes a `Model` takes the module itself too; `wrap` is for saying what the
    module does not: its preprocessing, its labels, a name, other arguments. Looking at the network
    does what calling it once in evaluation mode does, and what HookViz sets it takes back: its
    hooks, the training flags, torch's, Python's and NumPy's random generators, and every buffer
    that the pass wrote. What training has changed is seen by the next look. A single layer, such as
    a bare ``nn.Conv2d``, becomes the one layer of an ``nn.Sequential`` and is called ``"0"``.

    Args:
        module: any module that takes one ``(1, C, H, W)`` float tensor, or sound ``(1, C, L)`` or
            a volume ``(1, C, D, H, W)``, which are given as tensors. Of what `torch.compile`,
            `torch.nn.DataParallel` and DistributedDataParallel return, the module behind is looked
            at. A `Model` is given back as it is, with what else is given here put in.
        preprocess: the steps to its input; or a function from an RGB Pillow image to a
            ``(C, H, W)`` or ``(1, C, H, W)`` tensor, or a dict with it as ``pixel_values``; or an
            image processor of Hugging Face's, called with ``images=`` and ``return_tensors=``. By
            default what the network says: timm's ``pretrained_cfg``,
            Hugging Face's ``config``, else the channels of its first convolution at 224 pixels: 3
            with ImageNet's mean and deviation, 1 as grey from -1 to 1, and any other number from
            tensors alone. Where that does not run, the first look searches a size that does.
        categories: a label per class; by default those of Hugging Face's ``config``, if any.
        processor: another name for `preprocess`.
        name: what to call it; the class's name by default.
        example: for a network of several inputs, of inputs by name or in dictionaries: a tuple of
            its positional arguments, or a dict of those by name. The first float tensor of
            ``(1, C, H, W)`` in it (or else of ``(1, C, D, H, W)``, or of ``(1, C, L)``) is the
            image, whose place every later image takes; all else is given as it is at every pass.
            Where the network takes a list of images, as detectors do, it is the tensor of
            ``(C, H, W)`` in a list: ``example=([tensor],)``.
        train: look at it in the mode that it is in, so that in training mode dropout drops and
            batch norms take the statistics of the input. By default it is looked at in evaluation
            mode, and `Capture.note` says so where that changes what it computes.
        output: what its output means: a kind, ``"logits"``, ``"probabilities"``, ``"binary"``
            (one logit for two labels), ``"multilabel"``, ``"number"``, ``"embedding"``, ``"maps"``
            or ``"boxes"``; or the part that answers, a key, an index or a function of the output;
            or a `hookviz.Output` of both. By default what the network states or its numbers show;
            where that leaves a doubt its scores are shown as they are, and not as percentages.
        read: reads files that only you can read: a function from a path or the bytes of a file to
            the network's input, a float tensor of ``(C, H, W)``, whose depth and channels reach
            the network as they are. `prepare_input` and `capture` call it for every path and bytes.

    Raises:
        ModelError: `module` is no module, or one whose layers can't be seen (scripted, traced,
            lazy, meta, sparse, quantised); or `categories` are no labels, or `example` no example;
            or both `preprocess` and `processor` are given.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=64, crop=64), name="two layers")
    >>> hookviz.capture(model, "assets/samples/cat.jpg")["0"].values.shape  # (C, H, W)
    torch.Size([8, 62, 62])
    """
    labels = _labels(categories)
    if preprocess is not None and processor is not None:
        raise ModelError(
            say(
                "preprocess= and processor= are two names for one thing: give the image processor "
                "as either, and leave the other out."
            )
        )
    preprocess = as_function(processor if preprocess is None else preprocess)
    if isinstance(module, Model):
        if example is not None or train:
            raise ModelError(
                say(
                    "{model} is a Model already; example= and train= go with the torch.nn.Module "
                    "that it was made from.",
                    model=module.title,
                )
            )
        arguments: dict[str, Any] = {"preprocess": preprocess, "categories": labels}
        arguments |= {"name": name, "title": name, "read": read}
        changes = {key: value for key, value in arguments.items() if value}
        if output is not None:
            changes["output"] = as_output(output)
        if preprocess is not None:
            changes["is_guessed"] = False
        return replace(module, **changes) if changes else module
    network = network_of(module)
    _refuse_unsuitable(network)
    kind = type(network).__name__
    own_example = None if example is None else example_input(example)
    if own_example is not None:
        guess = guess_of(tuple(own_example.image.shape[1:]), as_values=normalises_itself(network))
    elif isinstance(preprocess, Preprocess):
        guess = Guess(preprocess)
    else:
        guess = stated_input(network)
    if own_example is None and next(network.children(), None) is None:
        network = nn.Sequential(network).train(network.training)
    return Model(
        name=name or kind,
        title=name or kind,
        network=network,
        fixed_digest="",
        weights="own",
        categories=labels or stated_labels(network),
        preprocess=preprocess or guess.preprocess,
        input_shape=guess.input_shape(preprocess or guess.preprocess),
        is_guessed=own_example is None and not isinstance(preprocess, Preprocess),
        train=train,
        example=own_example,
        output=stated_output(network) if output is None else as_output(output),
        read=read,
    )


def _labels(categories: Sequence[str]) -> tuple[str, ...]:
    """Return the labels, each a text."""
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise ModelError(
            say(
                "categories={categories} is no sequence of labels; give one label per class, "
                "such as ['cat', 'dog'].",
                categories=shorten(repr(categories)),
            )
        )
    labels = tuple(categories)
    wrong = next((label for label in labels if not isinstance(label, str)), None)
    if wrong is not None:
        raise ModelError(
            say(
                "categories holds {value}, which is no text; give one label per class, such "
                "as ['cat', 'dog'].",
                value=shorten(repr(wrong)),
            )
        )
    return labels


def _refuse_unsuitable(module: object) -> None:
    """Refuse a module whose layers no hook can see, or whose numbers are not there.

    Raises:
        ModelError: it is no module, or a scripted, traced, lazy, meta, sparse or quantised one; or
            a name in it has a dot. A scripted module among its own is a layer like another.
    """
    if not isinstance(module, nn.Module):
        raise ModelError(
            say("wrap takes a torch.nn.Module, not {name}.", name=type(module).__name__)
        )
    kind = type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        made = "traced" if isinstance(module, TracedModule) else "scripted"
        name = getattr(module, "original_name", kind)
        raise ModelError(
            say(
                "{name} is a {made} TorchScript module, whose layers run outside of Python "
                "where no hook sees them; wrap the module that it was {made} from, or export "
                "that with torch.export.",
                name=name,
                made=made,
            )
        )
    for name, part in module.named_modules():
        names = [key for key, _ in part._modules.items()]  # a script's has no other way
        wrong = next((key for key in names if "." in key or not key), None)
        if wrong is not None:
            raise ModelError(
                say(
                    "{kind} has a module called {name!r}{container}: names with a dot, or without "
                    "a letter, stand for other layers; give it another name, then wrap it.",
                    kind=kind,
                    name=wrong,
                    container=say(" in {name}", name=name) if name else "",
                )
            )
        if type(part).__module__.startswith(_QUANTISED):
            _refuse_quantised(
                kind, say("layer {name!r}", name=name) if name else say("its one layer")
            )
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        _refuse_tensor(kind, name, tensor)


def _refuse_tensor(kind: str, name: str, tensor: Tensor) -> None:
    if is_lazy(tensor):
        raise ModelError(
            say(
                "{kind} is lazy: the shape of {name} is not known before its first pass; run "
                "the module once on an input, then wrap it.",
                kind=kind,
                name=name,
            )
        )
    if tensor.is_meta:
        raise ModelError(
            say(
                "{kind} is on the meta device, where {name} has a shape and no values; move "
                "it with to_empty(device='cpu') and load its state dict, then wrap it.",
                kind=kind,
                name=name,
            )
        )
    if tensor.layout != torch.strided or tensor.is_nested:
        raise ModelError(
            say(
                "{kind} has a sparse tensor in {name}, which layers do not compute with as "
                "with others; put {name}.to_dense() in its place, then wrap it.",
                kind=kind,
                name=name,
            )
        )
    if tensor.is_quantized:
        _refuse_quantised(kind, name)


def _refuse_quantised(kind: str, where: str) -> NoReturn:
    raise ModelError(
        say(
            "{kind} is quantised ({modules}): its layers put out whole numbers with a "
            "scale, not the numbers that are shown here; wrap the float module that it "
            "was made from.",
            kind=kind,
            modules=where,
        )
    )


def stated_output(network: nn.Module) -> Output:
    """Return the meaning of the output that a network states, without running it.

    Of Hugging Face's networks by their task and ``config.problem_type``, of timm's by
    ``num_classes``, of torchvision's, segmentation-models-pytorch's and ultralytics' by their
    package; of any other by a softmax, a sigmoid or an identity in the place of the last layer.

    >>> from hookviz.models.wrapping import stated_output
    >>> stated_output(torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid())).kind
    'probabilities'
    """
    if is_of(network, "ultralytics"):
        return _YOLO.get(type(network).__name__, Output(is_said=False))
    last = list(network.modules())[-1]
    kind = next((kind for layer, kind in _LAST_LAYERS.items() if isinstance(last, layer)), "")
    return Output(kind or _of_library(network, last), is_said=False)


def _of_library(network: nn.Module, last: nn.Module) -> str:
    config = getattr(network, "config", None)
    if is_of(network, "transformers") and config is not None:
        return _of_task(network, config)
    if isinstance(getattr(network, "pretrained_cfg", None), dict):
        return LOGITS if getattr(network, "num_classes", 0) else EMBEDDING
    kind = next((kind for package, kind in _FAMILIES.items() if is_of(network, package)), "")
    is_headless = isinstance(last, nn.Identity) and kind in ("", LOGITS)
    return EMBEDDING if is_headless else kind


def _of_task(network: nn.Module, config: Any) -> str:
    """Return the kind of output of a network of Hugging Face; without a task an embedding."""
    names = [base.__name__ for base in type(network).__mro__]
    task = next((task for task in _TASKS if any(name.endswith(task) for name in names)), None)
    if task is None:
        return EMBEDDING
    if _TASKS[task] != LOGITS:
        return _TASKS[task]
    stated = _PROBLEMS.get(str(getattr(config, "problem_type", None)))
    return stated or (NUMBER if getattr(config, "num_labels", 0) == 1 else LOGITS)
