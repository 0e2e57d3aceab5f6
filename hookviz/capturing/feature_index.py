"""Load an index of images by their vectors, and find those that are like another image."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hookviz.capturing import feature_files
from hookviz.capturing.feature_vectors import POOLS, Features, check_finite
from hookviz.capturing.features import features, steps
from hookviz.errors import HookVizError, shorten
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import Model, ModelInput, Progress, ignore


@dataclass(frozen=True, eq=False, slots=True)
class FeatureIndex:
    """Vectors of images, loaded from a file, to find those that are like another image.

    `Features.save` writes it, and `load` reads it; ``FeatureIndex(features)`` needs no file.

    Attributes:
        features: the vectors, and what they were made with.
        folder: the one that the file lies in; None without a file.
        paths: the way from there to each image, as the file says; empty where it says none.

    >>> model = hookviz.load_model("shapesnet")
    >>> paths = [f"assets/samples/{name}.jpg" for name in ("cat", "checks", "dots", "star")]
    >>> index = hookviz.FeatureIndex(hookviz.extract_features(model, paths))
    >>> [(name, round(alike, 2)) for name, alike in
    ...  index.nearest(model, "assets/samples/dots.jpg", 2)]
    [('dots.jpg', 1.0), ('cat.jpg', 0.51)]
    """

    features: Features
    folder: Path | None = None
    paths: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FeatureIndex":
        """Load the index in a file that `Features.save` or ``hookviz features -o`` wrote.

        Nothing in the file is executed, and no image that it names is opened.

        Raises:
            HookVizError: there is no such file, it is no index or one of a newer HookViz, it is
                truncated or damaged, it holds no vectors or such with NaN, or it says that it holds
                more than it has room for.
        """
        file = path_of(path)
        table = feature_files.read(file)
        about = table.about
        size, pool = about.get("size", ""), about.get("pool", "")
        if pool not in POOLS or not (size == "" or (size.isdecimal() and len(size) < 6)):
            raise HookVizError(
                say("{file!r} doesn't say how its vectors were made.", file=shorten(file.name))
            )
        check_finite(table.names, table.vectors)
        vectors = Features(
            model=about.get("model", ""),
            weights=about.get("weights", ""),
            digest=about.get("digest", ""),
            layer=about.get("layer", ""),
            pool=pool,
            names=table.names,
            vectors=table.vectors,
            failed={},
            size=int(size) if size else None,
            whole=about.get("whole") == "True",
            preprocess=about.get("preprocess", ""),
        )
        return cls(vectors, file.parent.resolve(), table.paths)

    def nearest(
        self, model: Model | nn.Module, image: Any, count: int = 10, *, progress: Progress = ignore
    ) -> tuple[tuple[str, float], ...]:
        """Return the `count` images most similar to another one, by their names, best first.

        Its vector is made as those of the index were. The number is the cosine of the angle between
        the two, from -1 to 1; of equal ones the first in the index comes first.

        Args:
            model: the one that the index was made with.
            image: anything that `capture` takes.
            count: how many at most.
            progress: called with the share done.

        Raises:
            HookVizError: the model or its weights are others, `count` is less than 1, or the image
                gives no vector that can be compared.
        """
        if count < 1:
            raise HookVizError(say("count={count} is not a whole number above 0.", count=count))
        shares = self.similarity(model, image, progress=progress)
        return tuple(
            (self.features.names[index], float(shares[index])) for index in ranked(shares)[:count]
        )

    def similarity(
        self, model: Model | nn.Module, image: Any, *, progress: Progress = ignore
    ) -> NDArray[np.float64]:
        """Return how similar each image is to another one, ``(N,)``, in the index's order.

        Raises:
            HookVizError: as `nearest` does.
        """
        model = as_model(model)
        self.check(model)
        own = self.features
        options: dict[str, Any] = {"size": own.size, "whole": own.whole}
        if isinstance(image, ModelInput):
            options = {}
        asked = features(model, [image], own.layer, own.pool, progress=progress, **options)
        check_finite(asked.names, asked.vectors)
        return own.similarity_to(asked.vectors[0])

    def check(self, model: Model | nn.Module) -> None:
        """Refuse a model that is not the one that the vectors were made with.

        Raises:
            HookVizError: its weights are others, or it makes its inputs in another way.
        """
        model, own = as_model(model), self.features
        about = say(
            "{model} ({weights} weights)",
            model=shorten(own.model),
            weights=shorten(own.weights),
        )
        if not model.made(own.digest, own.model, own.weights):
            raise HookVizError(
                say(
                    "The index was made with {index_model}, digest {index_digest}, and this is "
                    "{model} ({weights} weights), digest {model_digest}: vectors of two networks "
                    "can't be compared. Load those weights, or make the index anew.",
                    index_model=about,
                    index_digest=shorten(own.digest[:12]),
                    model=model.title,
                    weights=model.weights,
                    model_digest=model.digest[:12],
                )
            )
        if steps(model) != own.preprocess:
            raise HookVizError(
                say(
                    "The index was made with {index_model}, whose inputs were made of images in "
                    "another way than {model}'s are. Take the same preprocessing, or make the "
                    "index anew.",
                    index_model=about,
                    model=model.title,
                )
            )

    def picture(self, index: int) -> Path | None:
        """Return where the image at a place of the index is; None where it is not there.

        Never outside of the folder that the index lies in, whatever the file says, by whichever
        links.
        """
        path = self.paths[index] if index < len(self.paths) else ""
        if self.folder is None or not path:
            return None
        try:
            real = (self.folder / path).resolve()
            inside = real.is_relative_to(self.folder) and real.is_file()
        except (OSError, ValueError, RuntimeError):  # a zero byte, too long, links in a circle
            return None
        return real if inside else None


def ranked(shares: NDArray[np.float64]) -> list[int]:
    """Return the places, the most similar first; of equal ones the first comes first."""
    return [int(index) for index in np.argsort(-shares, kind="stable")]
