"""Run a network with growing shares of its weights pruned, and keep the scores and maps."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.pruned_network import PruningPlan, masked_tensors
from hookviz.explaining.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.hooking.own_network import replaced_tensors
from hookviz.hooking.plain_tensors import plain
from hookviz.outputs.answer import Reading
from hookviz.types import Activation, Model, ModelInput, Progress

Values = dict[str, NDArray[Any]]


def _ignore_call(_call: hooks.Call) -> None: ...


class PruningPasses:
    """Forward passes of a model with a share of its weights set to 0."""

    def __init__(
        self,
        model: Model,
        model_input: ModelInput,
        plan: PruningPlan,
        count: int,
        progress: Progress,
    ) -> None:
        """Prepare to report the progress of `count` passes."""
        self.pruning = plan.pruning(model)
        self._model, self._model_input, self._plan = model, model_input, plan
        self._calls = {info.name: info.calls for info in input_trace(model, model_input).layers}
        self._reporter = ProgressReporter(progress, count * sum(self._calls.values()))

    def over_shares(self, shares: NDArray[np.float64], first: int, reading: Reading) -> Values:
        """Return scores, predictions and class `first`'s probability, if any, one per share."""
        logits, removed = [], []
        for share in shares:
            tensors, gone = self._pruned(float(share))
            removed.append(gone)
            logits.append(self._scores(tensors))
        scores = torch.cat(logits)
        values = {
            "shares": shares,
            "removed": np.array(removed),
            "logits": scores.numpy(),
            "top": scores.argmax(1).numpy(),
            "logit": scores[:, first].numpy(),
        }
        if not reading.is_share:
            return values
        chances = reading.values(scores)
        return values | {
            "top_probability": chances.max(1).values.numpy(),
            "probability": chances[:, first].numpy(),
        }

    def kept(self, share: float, found: Activation) -> Values:
        """Return the scores at one share, and the maps before, as `found` of a layer, and after."""
        raw: list[Tensor] = []

        def see(call: hooks.Call) -> None:
            if (
                call.layer == found.layer and not call.index
            ):  # a copy: an in-place layer can come next
                output = plain(call.output)
                assert output is not None  # of a convolution or a linear layer
                raw.append(output.to("cpu", torch.float32, copy=True))

        tensors, gone = self._pruned(share)
        kept: Values = {
            "kept_share": np.array(share),
            "kept_removed": np.array(gone),
            "kept_logits": self._scores(tensors, see)[0].numpy(),
        }
        if found.values.ndim == 3 and raw and raw[0].numel() == found.raw.numel():
            after = found.layout.maps(raw[0].reshape(found.raw.shape))
            kept |= {"before": found.values.numpy(), "after": after.numpy()}
        return kept

    def _pruned(self, share: float) -> tuple[dict[str, Tensor], float]:
        """Return the tensors pruned by a share, and the share of the weights that is 0 then."""
        masks = self.pruning.masks(share)
        stays = sum(int(mask.sum()) for mask in masks.values())
        tensors = masked_tensors(self._model, masks, self._plan.norms)
        return tensors, (self.pruning.count - stays) / self.pruning.count

    def _scores(
        self, tensors: Mapping[str, Tensor], see: Callable[[hooks.Call], None] = _ignore_call
    ) -> Tensor:
        """Return the class scores, ``(1, classes)``, and call `see` for every layer call."""

        def report(call: hooks.Call) -> None:
            see(call)
            self._reporter.step()

        with (
            private_replica(self._model) as network,
            replaced_tensors(network, tensors),
            hooks.observe(network, self._calls, report),
        ):
            found = class_scores(self._model, network, self._model_input.tensor, self._reporter)
            return found.values.to("cpu", torch.float32)
