"""Wrap a person's own module as a frozen `Model` in eval mode, with its likeliest input."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from PIL import Image
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.errors import ModelError, shorten
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.forward_pass import own_shape
from hookviz.hooking.purity import is_known_code
from hookviz.hooking.shape_pass import pass_without_data
from hookviz.language.saying import say
from hookviz.models.adapter import Example, adapt
from hookviz.models.digest import network_digest
from hookviz.models.frozen_copy import differs_in_training, frozen_copy, running_as
from hookviz.models.guessing import Guess, guess_input, guess_of
from hookviz.models.proof import prove
from hookviz.models.unsuitable import refuse_unsuitable
from hookviz.types import Model, Preprocess


@with_numbers
def wrap(
    module: nn.Module | Model,
    preprocess: Preprocess | Callable[[Image.Image], Tensor] | None = None,
    categories: Sequence[str] = (),
    *,
    name: str | None = None,
    example: Example | None = None,
    train: bool = False,
) -> Model:
    """Wrap a person's own network, as it is now, as a `Model`.

    It is a copy: training the module further changes nothing here, and nothing here changes it.
    Hooks that you have put on the module stay on it and off the copy. A single layer, such as a
    bare ``nn.Conv2d``, becomes the one layer of an ``nn.Sequential`` and is called ``"0"``.

    Args:
        module: any module that takes one ``(1, C, H, W)`` float tensor, or sound ``(1, C, L)`` or
            a volume ``(1, C, D, H, W)``, which are given as tensors. A `Model` is given back as it
            is, with what else is given here put in.
        preprocess: the steps to its input, or a function from an RGB Pillow image to a
            ``(C, H, W)`` tensor. By default as many channels as the first conv layer that runs
            takes: 3 with ImageNet's mean and deviation, 1 as grey from -1 to 1, and any other
            number from tensors alone; at 224 pixels, or at another usual size where the network
            takes no 224.
        categories: a label per class.
        name: what to call it; the class's name by default.
        example: for a network of several inputs, of inputs by name or in dictionaries: a tuple of
            its positional arguments, or a dict of those by name. The first float tensor of
            ``(1, C, H, W)`` in it (or else of ``(1, C, D, H, W)``, or of ``(1, C, L)``) is the
            image, whose place every later image takes; all else is given as it is at every pass.
        train: leave the copy in the mode that the module is in, so that in training mode dropout
            drops and batch norms take the statistics of the input. By default it is put into
            evaluation mode, and `Capture.note` says so where that changes what it computes. Passes
            run on copies: running statistics, and torch's random numbers, are as before afterwards.

    Raises:
        ModelError: `module` is no module, or one whose layers can't be seen (scripted, traced,
            lazy, meta, sparse, quantised), or can't be copied; or there is not one label per class.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    >>> model = hookviz.wrap(network, hookviz.Preprocess(resize=64, crop=64), name="two layers")
    >>> hookviz.capture(model, "assets/samples/cat.jpg")["0"].values.shape  # (C, H, W)
    torch.Size([8, 62, 62])
    """
    labels = _labels(categories)
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
        arguments |= {"name": name, "title": name}
        changes = {key: value for key, value in arguments.items() if value}
        return _with_a_label_per_class(replace(module, **changes)) if changes else module
    refuse_unsuitable(module)
    network = frozen_copy(module, train=train)
    guess = Guess(preprocess) if isinstance(preprocess, Preprocess) else None
    if example is not None:
        shape = adapt(network, example)
        guess = guess if guess and len(shape) == 3 else guess_of(shape)
    else:
        guess = guess or guess_input(network)
        shape = guess.shape or guess.preprocess.shape
        if not (guess.runs and is_known_code(module)):
            network = running_as(module, network, shape)
        if not guess.runs and not isinstance(preprocess, Preprocess):
            guess = guess_input(network)  # as it is now something may run
        prove(module, network, shape)
        if isinstance(network, _ConvNd) or not any(network.children()):
            network = nn.Sequential(network)
    return _with_a_label_per_class(
        Model(
            name=name or type(module).__name__,
            title=name or type(module).__name__,
            network=network,
            digest=network_digest(network),
            weights="own",
            categories=labels,
            preprocess=preprocess or guess.preprocess,
            input_shape=guess.shape,
            evaluated=not train and differs_in_training(module),
        )
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


def _with_a_label_per_class(model: Model) -> Model:
    """Return the model, unless a pass shows another number of classes than there are labels."""
    if not model.categories:
        return model
    try:
        output = pass_without_data(model, own_shape(model), lambda network, images: network(images))
    except ModelError:
        return model  # it takes another size: then nobody knows how many classes there are
    if isinstance(output, Tensor) and output.ndim == 2 and len(output) == 1:
        labels, classes = len(model.categories), output.shape[1]
        if labels != classes:
            raise ModelError(
                say(
                    "categories has {label_count:,} labels, and {model} puts out {class_count:,} "
                    "classes; give one label per class, in the order of its outputs.",
                    label_count=labels,
                    model=model.title,
                    class_count=classes,
                )
            )
    return model
