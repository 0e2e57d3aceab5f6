"""Use features of images: fit a linear probe on them, and find neighbours in the feature index.

A linear probe does not change the network (Alain and Bengio, "Understanding intermediate layers
using linear classifier probes", 2016). Nothing of a test image gets into the fit: the features are
standardised within each fold, and copies of one picture are in one fold.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.batch_images import Images, labelled_images, named
from hookviz.capturing.feature_index import FeatureIndex, ranked
from hookviz.capturing.feature_vectors import check_finite
from hookviz.capturing.features import features
from hookviz.capturing.inputs import open_source, prepare_input
from hookviz.deprecated import renamed_keyword
from hookviz.drawing.panels import Panel, PicturesPanel, TextPanel
from hookviz.drawing.pictures import thumbnail
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images import reading
from hookviz.images.formats import SUFFIXES
from hookviz.language.saying import localised, mark, say
from hookviz.machine.memory import MEGABYTE
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.settings import settings
from hookviz.types import Model, Pixels, Progress, ignore

_SEED = 0  # by which images are shuffled into folds
_MOST_STEPS = 5000  # of the solver
_LEAST_FOLDS, _MOST_FOLDS = 2, 100


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """Result of a linear probe: how well it tells classes apart, by cross-validation.

    Attributes:
        layer: whose output the features are made of.
        pool: how, one of `hookviz.capturing.feature_vectors.POOLS`.
        classes: their names, ``(C,)``.
        counts: images of each, ``(C,)``.
        accuracies: share of right answers in each fold, float64 ``(folds,)``.
        baselines: the same for always answering the class that the other folds have most of.
        confusion: images by their class (rows) and the answer (columns), ``(C, C)``.
        copies: how many images are copies of others, and so in the same fold as these.
        wrong: the answer for each image that was answered wrong, by its name.
        failed: why images were left out, by their names.
    """

    layer: str
    pool: str
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    accuracies: NDArray[np.float64]
    baselines: NDArray[np.float64]
    confusion: NDArray[np.int64]
    copies: int
    wrong: Mapping[str, str] = field(repr=False)
    failed: Mapping[str, str] = field(repr=False)

    @property
    def accuracy(self) -> float:
        """The mean over the folds."""
        return float(self.accuracies.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation over the folds, with n - 1; folds share data, so it is a hint."""
        return float(self.accuracies.std(ddof=1))

    @property
    def baseline(self) -> float:
        """The accuracy of always saying the most frequent class, the mean over the folds."""
        return float(self.baselines.mean())

    @property
    def by_class(self) -> NDArray[np.float64]:
        """The share of right answers for each class, ``(C,)``."""
        shares: NDArray[np.float64] = self.confusion.diagonal() / self.confusion.sum(1)
        return shares


@renamed_keyword("folder", "images")
def linear_probe(
    model: Model | nn.Module,
    images: Images,
    layer: str | None = None,
    pool: str = "mean",
    *,
    folds: int = 5,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
) -> LinearProbe:
    """Measure how well a layer tells classes apart: of a folder, ``photos/cats/…``, or a dataset.

    Logistic regression (scikit-learn's, L2 with C = 1) on standardised features, by stratified
    cross-validation: each image is answered by a classifier that has seen neither it nor a copy.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        images: a folder with a folder for each class, such as ``photos/cats`` and ``photos/dogs``,
            whose images can be in folders again; or a dataset or a loader of ``(image, label)``,
            whose images are kept in memory. Its ``classes`` name the labels.
        layer: a layer or a block; the last with maps by default.
        pool: how its output becomes a vector, as `extract_features` has it.
        folds: into how many parts the images are split.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done; what it raises ends the run.

    Raises:
        SettingError: `folds` is no number from 2 to 100, or `pool` means nothing.
        ImageError: the items of a dataset or a loader are no images with labels.
        HookVizError: there are fewer than two classes, or fewer different pictures of one than
            folds; a picture is in two classes; features are not finite; scikit-learn is missing.
        UnknownLayerError: the model lacks that layer.

    >>> import pathlib, shutil, tempfile
    >>> model = hookviz.load_model("shapesnet")
    >>> classes = {"photos": ("cat", "coffee"), "drawn": ("star", "heart")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for kind, names in classes.items():
    ...         (pathlib.Path(folder) / kind).mkdir()
    ...         for name in names:
    ...             _ = shutil.copy(f"assets/samples/{name}.jpg", f"{folder}/{kind}")
    ...     found = hookviz.linear_probe(model, folder, folds=2)
    >>> found.classes, found.counts
    (('drawn', 'photos'), (2, 2))
    """
    if isinstance(folds, bool) or not (
        isinstance(folds, int) and _LEAST_FOLDS <= folds <= _MOST_FOLDS
    ):
        raise SettingError(f"folds={shorten(repr(folds))} is no whole number from 2 to 100.")
    model = as_model(model)
    for part in ("linear_model", "model_selection", "pipeline", "preprocessing"):
        _sklearn(part)
    by_name = _labelled(model, images)
    reporter = ProgressReporter(progress, 2)
    digests, failed = _digests(model, {name: each for name, (_, each) in by_name.items()}, reporter)
    _check_counts(_count(by_name, digests), folds)
    readable = {name: by_name[name][1] for name in digests}
    extracted = features(
        model, readable, layer, pool, size=size, whole=whole, progress=reporter.within
    )
    failed |= extracted.failed
    check_finite(extracted.names, extracted.vectors)
    labels = [by_name[name][0] for name in extracted.names]
    groups = [digests[name] for name in extracted.names]
    _check_groups(extracted.names, labels, groups)
    _check_counts(_count(by_name, {name: digests[name] for name in extracted.names}), folds)
    accuracies, baselines, answers = cross_validated(extracted.vectors, labels, groups, folds)
    classes = tuple(sorted(set(labels)))
    confusion = np.zeros((len(classes), len(classes)), np.int64)
    for label, answer in zip(labels, answers, strict=True):
        confusion[classes.index(label), classes.index(answer)] += 1
    pairs = zip(extracted.names, labels, answers, strict=True)
    return LinearProbe(
        layer=extracted.layer,
        pool=pool,
        classes=classes,
        counts=tuple(int(count) for count in confusion.sum(1)),
        accuracies=accuracies,
        baselines=baselines,
        confusion=confusion,
        copies=len(groups) - len(set(groups)),
        wrong={name: answer for name, label, answer in pairs if answer != label},
        failed=failed,
    )


def cross_validated(
    vectors: NDArray[np.float32], labels: Sequence[str], groups: Sequence[str], folds: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Cross-validate: accuracy and baseline of each fold, and the held-out answer for each vector.

    Vectors are ``(N, D)``; those of one group are in one fold.

    Raises:
        HookVizError: scikit-learn is not installed.
    """
    splitter = _sklearn("model_selection").StratifiedGroupKFold(
        folds, shuffle=True, random_state=_SEED
    )
    wide, truth = vectors.astype(np.float64), np.array(labels)
    answers = np.empty_like(truth)
    right, base = [], []
    first = {group: index for index, group in reversed([*enumerate(groups)])}
    group_ids = [first[group] for group in groups]  # a shuffle goes by their order
    for seen, unseen in splitter.split(wide, truth, group_ids):
        classifier = _sklearn("pipeline").make_pipeline(
            _sklearn("preprocessing").StandardScaler(),
            _sklearn("linear_model").LogisticRegression(max_iter=_MOST_STEPS),
        )
        answers[unseen] = classifier.fit(wide[seen], truth[seen]).predict(wide[unseen])
        right.append(float(np.mean(answers[unseen] == truth[unseen])))
        names, counts = np.unique(truth[seen], return_counts=True)
        base.append(float(np.mean(truth[unseen] == names[counts.argmax()])))
    return np.array(right), np.array(base), [str(answer) for answer in answers]


def _sklearn(part: str) -> Any:
    try:
        return import_module(f"sklearn.{part}")  # takes seconds, and few need it
    except ImportError as error:
        raise HookVizError(
            "Classifiers are fitted by scikit-learn, which is not installed: pip install "
            "'hookviz[classify]', or '.[classify]' in a checkout."
        ) from error


def _labelled(model: Model, images: Images) -> dict[str, tuple[str, Any]]:
    """Return each image with its class, by its name."""
    if isinstance(images, str | os.PathLike):
        by_class = _class_folders(path_of(images))
        return {str(file): (name, file) for name, files in by_class.items() for file in files}
    pairs = list(labelled_images(model, images))
    classes = getattr(getattr(images, "dataset", images), "classes", ())
    labels = [_class_name(label, classes) for _, label in pairs]
    if len(set(labels)) < 2:
        raise HookVizError(
            f"The images have {len(set(labels))} class{'es' * (len(set(labels)) != 1)}, and a "
            "classifier needs two at least."
        )
    names = named(image for image, _ in pairs)
    return {name: (label, each) for (name, each), label in zip(names.items(), labels, strict=True)}


def _class_name(label: Any, classes: Sequence[str]) -> str:
    """Return a label's name among a dataset's classes, or the label as text."""
    value = label.item() if isinstance(label, Tensor | np.generic) else label
    if isinstance(value, int) and 0 <= value < len(classes):
        return str(classes[value])
    return str(value)


def _class_folders(folder: Path) -> dict[str, list[Path]]:
    """List the images of each class, by the name of its folder."""
    if not folder.is_dir():
        raise HookVizError(f"There is no folder {shorten(str(folder))!r}.")
    by_class = {
        inside.name: sorted(
            file
            for file in inside.rglob("*")
            if file.suffix.casefold() in SUFFIXES and file.is_file()
        )
        for inside in sorted(folder.iterdir())
        if inside.is_dir() and not inside.name.startswith(".")
    }
    listed = {name: files for name, files in by_class.items() if files}
    if len(listed) < 2:
        raise HookVizError(
            f"{shorten(str(folder))!r} has {len(listed)} folder{'s' * (len(listed) != 1)} with "
            "images in it, and a classifier needs two at least, one for each class: "
            "photos/cats/…, photos/dogs/…"
        )
    return listed


def _digests(
    model: Model, images: Mapping[str, Any], reporter: ProgressReporter
) -> tuple[dict[str, str], dict[str, str]]:
    """Digest each picture's pixels, or each tensor, and say why images can't be read."""
    digests, failed = {}, {}
    for index, (name, image) in enumerate(images.items()):
        reporter.within(index / len(images))
        try:
            source = open_source(model, image)
            source = prepare_input(model, source) if isinstance(source, Tensor) else source
            digests[name] = source.digest
        except HookVizError as error:
            failed[name] = str(error)
    reporter.step()
    return digests, failed


def _count(by_name: Mapping[str, tuple[str, Any]], digests: Mapping[str, str]) -> dict[str, int]:
    """Count the different pictures of each class."""
    different: dict[str, set[str]] = {name: set() for name, _ in by_name.values()}
    for name, digest in digests.items():
        different[by_name[name][0]].add(digest)
    return {name: len(pictures) for name, pictures in different.items()}


def _check_counts(counts: Mapping[str, int], folds: int) -> None:
    name, least = min(counts.items(), key=lambda item: item[1])
    if least >= folds:
        return
    fewer = f", or take {least} folds" if least >= _LEAST_FOLDS else ""
    raise HookVizError(
        f"{shorten(name)!r} has {least} different picture{'s' * (least != 1)} that can be read, "
        f"and {folds} folds need {folds} of each class at least: add {folds - least}{fewer}."
    )


def _check_groups(names: Sequence[str], labels: Sequence[str], groups: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for index, group in enumerate(groups):
        other = first.setdefault(group, index)
        if labels[other] != labels[index]:
            raise HookVizError(
                f"{shorten(names[other])!r} and {shorten(names[index])!r} are the same picture in "
                "two classes: take it out of one."
            )


MOST_PICTURES = 6
"""How many neighbours are shown."""

PICTURE_SIDE = 208
"""Side of each picture in pixels, twice that on the screen."""

_TITLE = mark("Most alike in the index")


def index_neighbours(
    model: Model, image: Any, progress: Progress = ignore
) -> tuple[tuple[Panel, ...], dict[str, NDArray[Any]]]:
    """Find the nearest images in the index of ``HOOKVIZ_INDEX``; empty without such a setting.

    A panel says if the index is of another model or can't be read. Values: ``index_names`` and
    ``index_similarity``, float64 ``(N,)``, of the nearest, best first.
    """
    path = settings().index
    if not path:
        return (), {}
    try:
        index = _loaded(path)
    except HookVizError as error:
        return (TextPanel(str(error), "bad"),), {}
    try:
        similarities = index.similarity(model, image, progress=progress)
    except HookVizError as error:
        return (TextPanel(f"{say(_TITLE)}: {error}", "note"),), {}
    nearest = ranked(similarities)[:MOST_PICTURES]
    features = index.features
    names = [features.names[row] for row in nearest]
    panel = PicturesPanel(
        say(_TITLE),
        tuple(_picture(index, row) for row in nearest),
        tuple(shorten(Path(name).name or name, 40) for name in names),
        tuple(localised(f"{similarities[row]:.2f}") for row in nearest),
        say(
            "Of {count:,} images, by the cosine of their vectors from layer {layer}.",
            count=len(features.names),
            layer=features.layer,
        ),
    )
    values = {"index_names": np.array(names), "index_similarity": similarities[nearest]}
    return (panel,), values


@lru_cache(maxsize=1)
def _loaded(path: str) -> FeatureIndex:
    return FeatureIndex.load(path)


def _picture(index: FeatureIndex, row: int) -> Pixels | None:
    """Load a thumbnail of an indexed image; None where it is missing, unreadable or too large."""
    path = index.picture(row)
    try:
        if path is None or path.stat().st_size > settings().upload_mb * MEGABYTE:
            return None
        return thumbnail(reading.read(path).pixels, PICTURE_SIDE)
    except (HookVizError, OSError):
        return None
