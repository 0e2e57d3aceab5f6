"""Show where a segmenting network sees which class: its output as maps, one for each class."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import ModelError, UnknownNameError
from hookviz.hooking import hooks
from hookviz.hooking.device import with_numbers
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.torch_functions import plain
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.outputs.reading import map_probabilities
from hookviz.types import Model, ModelInput, Progress


@dataclass(frozen=True, eq=False)
class ClassMaps(Mapping[str, Tensor]):
    """How probable each class is at each pixel of what a network saw.

    ``maps["cat"]`` is one class's map, float32 ``(H, W)``, 0…1; iterating gives the labels.

    Attributes:
        model: what the model is called.
        model_input: the input with its picture and crop.
        probabilities: float32 on the CPU, ``(classes, H, W)``.
        categories: a label for each.
    """

    model: str
    model_input: ModelInput
    probabilities: Tensor = field(repr=False)
    categories: tuple[str, ...] = field(repr=False)

    @property
    def winners(self) -> Tensor:
        """The likeliest class of each pixel, its number, int64 ``(H, W)``."""
        return self.probabilities.argmax(0)

    def shares(self) -> tuple[tuple[str, float], ...]:
        """Return which share of the pixels each class wins, the largest first; none that wins none.

        >>> import torch
        >>> from hookviz.capturing.segmentation_maps import ClassMaps
        >>> probabilities = torch.tensor([[[0.9, 0.2]], [[0.1, 0.8]]])  # (2, 1, 2)
        >>> ClassMaps("", None, probabilities, ("sky", "cat")).shares()
        (('sky', 0.5), ('cat', 0.5))
        """
        counts = torch.bincount(self.winners.flatten(), minlength=len(self.categories))
        order = counts.argsort(descending=True, stable=True).tolist()
        whole = int(counts.sum())
        return tuple((self.categories[at], int(counts[at]) / whole) for at in order if counts[at])

    def __getitem__(self, label: str) -> Tensor:
        """Return the map of a class.

        Raises:
            UnknownNameError: there is no such class; the error names the nearest.
        """
        if label not in self.categories:
            raise UnknownNameError(say("class"), label, self.categories)
        return self.probabilities[self.categories.index(label)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.categories)

    def __len__(self) -> int:
        return len(self.categories)


@with_numbers
def segmentation_maps(
    model: Model | nn.Module, image: Any, *, progress: Progress | None = None
) -> ClassMaps:
    """Return how probable each class is at each pixel, from a network that segments.

    Its output is scores of ``(1, classes, H, W)``, by itself or as the part that answers
    (`hookviz.Output`). The probabilities are their softmax over the classes, or what the network
    says: where they are probabilities already they stay, and one map that is said to be a logit
    makes two classes by its sigmoid.

    Args:
        model: such as ``load_model("lraspp_mobilenet_v3_large")``, or a module of one's own.
        image: anything that `capture` takes.
        progress: called with the share that is done, 0…1; what it raises ends the pass.

    Raises:
        ImageError: the image can't be read.
        ModelError: the network can't take it, or puts out no such scores.

    >>> import torch
    >>> model = hookviz.wrap(torch.nn.Conv2d(3, 2, 1), categories=["sky", "ground"])
    >>> maps = hookviz.segmentation_maps(model, torch.rand(1, 3, 8, 8))
    >>> maps["sky"].shape  # (H, W)
    torch.Size([8, 8])
    """
    model = as_model(model)
    model_input = prepare_input(model, image)
    with private_replica(model) as replica:
        names = layers.leaf_names(model.network) if progress else frozenset[str]()
        reporter = ProgressReporter(progress, len(names))
        with hooks.observe(replica, names, lambda _call: reporter.step()):
            output = forward_pass(model, replica, model_input.tensor, reporter)
    output = plain(output) if isinstance(output, Tensor) else output
    probabilities = map_probabilities(model.output, output)
    if probabilities is None:
        raise ModelError(
            say(
                "{model} puts out no scores of classes at each pixel, (1, classes, H, W). Networks "
                "for segmentation do, such as lraspp_mobilenet_v3_large. Where it puts out one "
                'map, say that it is the logit of a class: wrap(network, output="binary").',
                model=model.title,
            )
        )
    count = len(probabilities)
    known = model.categories if len(model.categories) == count else ()
    labels = known or tuple(say("class {number}", number=number) for number in range(count))
    return ClassMaps(model.title, model_input, probabilities, labels)
