"""Export a network as ONNX with the outputs of its layers, and prove that they are PyTorch's.

Forward hooks that are registered while `torch.export` follows the network make each layer's output
one of the graph's. So a layer has its own name there, each of its calls is an output, and a layer
that writes into its input changes none of them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing import engine
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.recorded_pass import without_batch
from hookviz.errors import HookVizError, ModelError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import say
from hookviz.outputs.reading import picked
from hookviz.types import ActivationKey, Capture, Layout, Model, ModelInput, Progress, ignore
from hookviz.wording import number

TOLERANCE = 1e-4
"""Largest difference to PyTorch that an output may have, as a share of its largest value."""

SCORES = "scores"
"""Name of the graph's output that has the class scores."""

WEIGHTS_NAME = "network.onnx.data"
"""Name of the file of weights in the graph."""

_IMAGE, _NETWORK = "image", "network.onnx"


@dataclass(frozen=True, eq=False)
class OnnxNetwork:
    """Network as ONNX.

    Attributes:
        graph: the ONNX file without its weights.
        weights: the file of its weights, which the graph calls `WEIGHTS_NAME`.
        offsets: where in it the bytes of each parameter begin, by its name in the network, if they
            are there as they are.
        outputs: name of the graph's output for each output of a layer.
        inputs: name of the graph's output for what a layer was given at its first call.
        has_scores: whether one of its outputs is `SCORES`.
        error: largest difference to PyTorch, as a share of an output's largest value.
    """

    graph: bytes = field(repr=False)
    weights: bytes = field(repr=False)
    offsets: Mapping[str, int] = field(repr=False)
    outputs: Mapping[ActivationKey, str] = field(repr=False)
    inputs: Mapping[str, str] = field(repr=False)
    has_scores: bool
    error: float


def export_network(
    model: Model,
    images: Sequence[ModelInput],
    layers: Sequence[str],
    inputs: Sequence[str],
    progress: Progress = ignore,
) -> OnnxNetwork:
    """Export a model, and compare each output with what `capture` gives.

    Args:
        model: whose network.
        images: it is compared on these, and on noise.
        layers: those whose outputs the graph has.
        inputs: those whose inputs the graph has, too.
        progress: called with the share done.

    Raises:
        ModelError: the network can't be exported, or an output is not the one that PyTorch gives.
    """
    watched = _Watched(model, images[0], layers, inputs)
    program = _exported(model, watched, images[0].tensor)
    progress(0.5)
    graph, weights, offsets = _as_files(program)
    run = _runner(graph, weights)
    noise = torch.randn(images[0].tensor.shape, generator=torch.Generator().manual_seed(0))
    has_scores, most = watched.has_scores, 0.0
    for at, image in enumerate((*images, noise)):
        capture = engine.capture(model, image, layers)
        most = max(most, _compare(model, run, capture, watched.names))
        has_scores = has_scores and _has_these_scores(run, capture)
        progress(0.6 + 0.4 * (at + 1) / (len(images) + 1))
    return OnnxNetwork(
        graph=graph,
        weights=weights,
        offsets=offsets,
        outputs=watched.names,
        inputs=watched.input_names,
        has_scores=has_scores,
        error=most,
    )


def check_libraries() -> None:
    """Refuse to go on without the libraries of the extra ``[live]``.

    Raises:
        HookVizError: one of them is missing.
    """
    try:
        import onnx  # noqa: F401, PLC0415 - they take a second
        import onnxruntime  # noqa: F401, PLC0415
        import onnxscript  # noqa: F401, PLC0415
    except ImportError as error:
        raise HookVizError(
            say(
                "A live page needs {name}, which is not installed: pip install 'hookviz[live]' "
                "gets all that it needs.",
                name=error.name or "onnx",
            )
        ) from error


class _Watched(nn.Module):
    """Network that returns what its layers put out, and then its scores."""

    def __init__(
        self, model: Model, model_input: ModelInput, layers: Sequence[str], inputs: Sequence[str]
    ) -> None:
        super().__init__()
        trace = input_trace(model, model_input)
        addresses = [each for name in layers for each in trace.shown_outputs[name]]
        self.network = model.network
        self.names = {address: f"output {at}" for at, address in enumerate(addresses)}
        self.input_names = {name: f"input {at}" for at, name in enumerate(inputs)}
        self.has_scores = True
        self._part = model.output.part
        self._layouts: dict[ActivationKey, Layout] = {
            each: trace.layout_of(each) for each in addresses
        }

    @property
    def output_names(self) -> list[str]:
        """Names of all that it returns."""
        scores = [SCORES] if self.has_scores else []
        return [*self.names.values(), *self.input_names.values(), *scores]

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """Return the maps of each output, what was given to layers, and the scores as a row."""
        outputs: dict[ActivationKey, Tensor] = {}
        inputs: dict[str, Tensor] = {}

        def see(call: hooks.Call) -> None:
            for path, tensor in hooks.plain_tensors_in(call.output):
                address = ActivationKey(call.layer, call.index, path)
                if address in self.names:
                    outputs[address] = self._maps(address, tensor)

        def see_input(call: hooks.Call) -> None:
            if not call.index:
                inputs[call.layer] = call.inputs[0][0].clone()

        layers = list(dict.fromkeys(address.layer for address in self.names))
        with (
            hooks.before(self.network, list(self.input_names), see_input),
            hooks.observe(self.network, layers, see),
        ):
            raw = self.network(image)
        scores = picked(self._part, raw)
        self.has_scores = isinstance(scores, Tensor)
        rows = [scores.reshape(-1)] if isinstance(scores, Tensor) else []
        ordered = [outputs[address] for address in self.names]
        return (*ordered, *(inputs[name] for name in self.input_names), *rows)

    def _maps(self, address: ActivationKey, output: Tensor) -> Tensor:
        """Return a copy of an output as maps, which nothing writes into later."""
        layout = self._layouts[address]
        values = output
        if layout.batch:
            values = without_batch(values)
            layout = layout.of(tuple(values.shape))
        return layout.maps(values).clone()


def _exported(model: Model, watched: _Watched, image: Tensor) -> Any:
    """Return the program that `torch.onnx` made of a network.

    Raises:
        ModelError: there is an operation that it can't export.
    """
    with private_replica(model) as replica, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about themselves
        watched.network = replica
        watched.eval()
        try:
            program = torch.export.export(watched, (image,), strict=False)
            return torch.onnx.export(
                program,
                input_names=[_IMAGE],
                output_names=watched.output_names,
                dynamo=True,
                verbose=False,
            )
        except Exception as error:
            raise ModelError(
                say(
                    "{model} can't be exported as ONNX: {problem}. hookviz page saves what it "
                    "computes for one image.",
                    model=model.title,
                    problem=shorten(_innermost(error), 300),
                )
            ) from error


def _innermost(error: BaseException) -> str:
    """Return the first line of the error that began a chain of them: it names the operation."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _as_files(program: Any) -> tuple[bytes, bytes, dict[str, int]]:
    """Return graph and weights as files, and where in the latter each parameter begins."""
    import onnx  # noqa: PLC0415 - takes a second

    with TemporaryDirectory() as folder:
        file = Path(folder) / _NETWORK
        program.save(file, external_data=True)
        graph, data = file.read_bytes(), file.with_name(WEIGHTS_NAME)
        weights = data.read_bytes() if data.exists() else b""
    offsets = {}
    for each in onnx.load_from_string(graph).graph.initializer:
        entries = {entry.key: entry.value for entry in each.external_data}
        if "offset" in entries or "length" in entries:
            offsets[each.name.removeprefix("network.")] = int(entries.get("offset", 0))
    return graph, weights, offsets


_Run = Callable[[Tensor, Sequence[str]], list[NDArray[np.float32]]]


def _runner(graph: bytes, weights: bytes) -> _Run:
    """Return a function of an image and names of outputs that runs the graph."""
    import onnxruntime  # noqa: PLC0415 - takes a second

    options = onnxruntime.SessionOptions()
    # As in the page: no layer is merged with the one after it.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_external_initializers_from_files_in_memory(
        [WEIGHTS_NAME], [weights], [len(weights)]
    )
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def run(image: Tensor, names: Sequence[str]) -> list[NDArray[np.float32]]:
        outputs: list[NDArray[np.float32]] = session.run(list(names), {_IMAGE: image.numpy()})
        return outputs

    return run


def _has_these_scores(run: _Run, capture: Capture) -> bool:
    """Return whether the output `SCORES` has the scores of a capture, to be read as classes."""
    if capture.answer is None or capture.answer.areas is not None:
        return False
    wanted = capture.answer.scores.numpy()
    [scores] = run(capture.model_input.tensor, [SCORES])
    return scores.shape == wanted.shape and _difference(scores, wanted) <= TOLERANCE


def _compare(
    model: Model, run: _Run, capture: Capture, names: Mapping[ActivationKey, str]
) -> float:
    """Return the largest difference to a capture, as a share of an output's largest value.

    Raises:
        ModelError: it is larger than `TOLERANCE`.
    """
    most = 0.0
    outputs = run(capture.model_input.tensor, list(names.values()))
    for address, values in zip(names, outputs, strict=True):
        difference = _difference(values, capture[str(address)].values.numpy())
        if not difference <= TOLERANCE:
            raise ModelError(
                say(
                    "As ONNX, {layer} of {model} differs from PyTorch by {share} of its largest "
                    "value, and may by {most}. hookviz page saves what PyTorch computes.",
                    layer=address,
                    model=model.title,
                    share=number(difference),
                    most=number(TOLERANCE),
                )
            )
        most = max(most, difference)
    return most


def _difference(values: NDArray[np.float32], wanted: NDArray[np.float32]) -> float:
    """Return the largest difference, as a share of the largest finite value; ∞ for other shapes."""
    if values.shape != wanted.shape or not np.array_equal(np.isfinite(values), np.isfinite(wanted)):
        return np.inf
    finite = np.isfinite(wanted)
    if not finite.any():
        return 0.0
    most = float(np.abs(wanted[finite]).max())
    difference = float(np.abs(values[finite] - wanted[finite]).max())
    return difference / most if most else difference
