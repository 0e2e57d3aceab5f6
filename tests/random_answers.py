"""What a random network answers with: each form with what it means, and the numbers to show."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tests.random_forms import Around, form

ROWS, COLUMNS = 3, 4  # of the maps


class Meaning(NamedTuple):
    """What is said of an output, and the values that are to be shown for its first image."""

    output: str | None
    values: Callable[[Any], Tensor]
    is_share: bool = True


@form
class Softmaxes(Around):
    def forward(self, images: Tensor) -> Any:
        return self.network(images).softmax(1)


@form
class OneLogit(Around):
    def forward(self, images: Tensor) -> Any:
        return self.network(images)[:, :1]


@form
class ManyLabels(Around):
    def forward(self, images: Tensor) -> Any:
        return self.network(images)


@form
class OneNumber(Around):
    def forward(self, images: Tensor) -> Any:
        return self.network(images)[:, 0]


@form
class Embeds(Around):
    def forward(self, images: Tensor) -> Any:
        return {"vector": self.network(images), "count": torch.ones(1, dtype=torch.int64)}


@form
class NamesItsParts(Around):
    def forward(self, images: Tensor) -> Any:
        scores = self.network(images)
        return {"hidden": scores * 2, "logits": scores}


@form
class OneCell(Around):
    def forward(self, images: Tensor) -> Any:
        return self.network(images)[:, :, None, None]


@form
class MapsOfClasses(Around):
    def forward(self, images: Tensor) -> Any:
        scores = self.network(images)
        ramp = torch.linspace(-1, 1, ROWS * COLUMNS, dtype=scores.dtype).reshape(ROWS, COLUMNS)
        return scores[:, :, None, None] * ramp


@form
class Detects(Around):
    def forward(self, images: Tensor) -> Any:
        shares = self.network(images).float().softmax(1)
        edges = torch.tensor([[0.0, 0, 4, 4], [2, 2, 6, 9], [1, 3, 5, 5]])
        labels = torch.tensor([2, 0, 2])
        return [{"boxes": edges, "labels": labels, "scores": each[:3]} for each in shares]


def _areas(raw: Tensor) -> Tensor:
    likeliest = raw[0].float().argmax(0).flatten()
    return torch.stack([(likeliest == number).float().mean() for number in range(raw.shape[1])])


def _best(raw: Any) -> Tensor:
    shares = [0.0] * 100
    for label, score in zip(raw[0]["labels"].tolist(), raw[0]["scores"].tolist(), strict=True):
        shares[label] = max(shares[label], score)
    return torch.tensor(shares)


MEANINGS: Mapping[str, Meaning] = {
    "Softmaxes": Meaning("probabilities", lambda raw: raw[0]),
    "OneLogit": Meaning(
        "binary", lambda raw: torch.cat([1 / (1 + raw[0].exp()), 1 / (1 + (-raw[0]).exp())])
    ),
    "ManyLabels": Meaning("multilabel", lambda raw: 1 / (1 + (-raw[0]).exp())),
    "OneNumber": Meaning("number", lambda raw: raw[:1], is_share=False),
    "Embeds": Meaning("embedding", lambda raw: raw["vector"][0], is_share=False),
    "NamesItsParts": Meaning("logits", lambda raw: _softmax(raw["logits"][0])),
    "OneCell": Meaning("logits", lambda raw: _softmax(raw[0, :, 0, 0])),
    "MapsOfClasses": Meaning("maps", _areas),
    "Detects": Meaning(None, _best),
}
"""By the name of the form."""


def _softmax(scores: Tensor) -> Tensor:
    powers = (scores - scores.max()).exp()
    return powers / powers.sum()
