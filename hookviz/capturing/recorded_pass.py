"""Run one pass that records what the wanted layers are given and put out, and read its answer."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.capturing.layers import conv_names, quiet_names
from hookviz.capturing.layouts import is_unbatched
from hookviz.capturing.storage import HOST, Storage
from hookviz.capturing.wanted_layers import meta_output_error
from hookviz.capturing.watched_pass import FirstLook
from hookviz.errors import HookVizError, ModelError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.function_calls import observe_functions
from hookviz.hooking.modules import named_modules
from hookviz.hooking.network_state import is_shared
from hookviz.hooking.recorder import Recorded, Recorder
from hookviz.hooking.selection import Layers, select
from hookviz.language.saying import say
from hookviz.outputs.answer import Answer, Reading, Scores
from hookviz.outputs.declaration import EMBEDDING
from hookviz.outputs.reading import no_scores, read_scores
from hookviz.types import UNKNOWN, Activation, ActivationKey, Model, ModelInput, Progress


@dataclass(frozen=True, eq=False, slots=True)
class Recording:
    """Recorded activations of each layer, and the scores; None where there are none.

    With several images in the input, all of it has the batch as its first dimension.

    Attributes:
        calls: layer and number of each recorded call, in order of return; none out of a cache.
    """

    by_layer: dict[str, tuple[Activation, ...]]
    scores: Scores | None
    complete: bool
    unanswered: str = ""
    inputs: tuple[Activation, ...] = ()
    calls: tuple[tuple[str, int], ...] = ()

    def is_as_traced(self, trace: LayerTrace) -> bool:
        """Whether the trace has all calls; a network that remembers runs others at each pass."""
        return trace.order.keys() >= set(self.calls)

    def in_order(
        self, trace: LayerTrace, activations: Iterable[Activation]
    ) -> tuple[Activation, ...]:
        """Sort activations by when their calls returned: in this pass, or else as traced."""
        order = {call: index for index, call in enumerate(self.calls or trace.order)}

        def position(activation: Activation) -> int:
            return order.get((activation.address.layer, activation.address.call), len(order))

        return tuple(sorted(activations, key=position))


def run(
    model: Model,
    model_input: ModelInput,
    seen: LayerTrace,
    names: tuple[str, ...],
    *,
    stop_early: bool,
    progress: Progress | None,
    inputs: bool = False,
    whole: bool = False,
    needed: tuple[str, ...] | None = None,
    storage: Storage = HOST,
) -> Recording:
    """Run one forward pass that records what layers are given and put out.

    A hook copies what it records of a person's own network at once, so that nothing written later
    can change it; of the catalog's what is known to be written over.

    Args:
        model: whose network runs.
        model_input: its input.
        seen: what a pass over it runs.
        names: the layers to record.
        stop_early: end the pass with the last of them.
        progress: called with the share done after every layer.
        inputs: record what they are given too.
        whole: leave a batch of one in the tensors.
        needed: those of `names` that are nothing without; all of them by default.
        storage: where the tensors are kept.

    Raises:
        ModelError: the network can't take this input, or a layer puts out no numbers.
    """
    copies = seen.overwritten if is_shared(model.network) else names
    if not seen.is_static:  # the end may come later than the trace says
        stop_early = False
    watch = _Watch(
        seen,
        names,
        copies,
        stop_early=stop_early,
        progress=progress,
        inputs=inputs,
        detach=storage.detach,
    )
    output = _forward(model, model_input, watch)
    return recording_of(
        model,
        model_input,
        seen,
        needed or names,
        output=output,
        records=watch.recorder.records,
        given=watch.inputs.records,
        whole=whole,
        storage=storage,
    )


def first_look(model: Model, layers: Layers) -> FirstLook | None:
    """Return what a pass that traces a network is to record, where one is made for `layers`.

    None where that pass is another one than is asked for: of the catalog's networks it has no data,
    and none is traced with edits.
    """
    if is_shared(model.network) or model.edits:
        return None

    def choose() -> frozenset[str]:
        if layers is None:
            return conv_names(model.network)
        with suppress(HookVizError):  # which is told by the trace, that knows the functions too
            return frozenset(select(model, layers))
        return frozenset()

    return FirstLook(choose)


def recording_of(
    model: Model,
    model_input: ModelInput,
    seen: LayerTrace,
    needed: tuple[str, ...],
    *,
    output: Any,
    records: Sequence[Recorded],
    given: Sequence[Recorded] = (),
    whole: bool = False,
    storage: Storage = HOST,
) -> Recording:
    """Return what hooks recorded of a pass, and its answer.

    It is nothing without the layers in `needed`. `output` is the network's, None where the pass was
    ended before; `records` what layers put out, `given` what they took; the rest as `run` has it.

    Raises:
        ModelError: a layer puts out no numbers.
    """
    every, records = records, [each for each in records if not each.tensor.is_meta]
    by_layer: dict[str, tuple[Activation, ...]] = {}
    values = storage.keep(record.tensor for record in (*records, *given))
    for record, kept in zip(records, values, strict=False):
        part = _activation(seen, record.address, kept, whole=whole)
        by_layer[part.layer] = (*by_layer.get(part.layer, ()), part)
    calls = tuple(dict.fromkeys((each.address.layer, each.address.call) for each in records))
    missing = next((name for name in needed if name not in by_layer), None)
    if missing is not None:
        on_meta = any(record.address.layer == missing for record in every)
        raise _nothing_to_look_at(model, seen, missing, on_meta=on_meta)
    taken = tuple(_taken(model, seen, given, values[len(records) :], whole=whole))
    if output is None:
        return Recording(by_layer, None, complete=False, inputs=taken, calls=calls)
    scores, lack = _scores_of(model, model_input, output)
    return Recording(by_layer, scores, complete=True, unanswered=lack, inputs=taken, calls=calls)


def _scores_of(model: Model, model_input: ModelInput, output: Any) -> tuple[Scores | None, str]:
    """Return the scores in what a network put out, or why it has none."""
    images, labels = len(model_input.tensor), len(model.categories)
    *_, height, width = (1, *model_input.tensor.shape)
    scores = read_scores(model.output, output, images, labels, size=(height, width))
    if scores is None:
        return None, no_scores(model.title, output, images)
    areas = None if scores.areas is None else HOST.keep([scores.areas])[0]
    [rows] = HOST.keep([scores.values])
    return scores._replace(values=rows, areas=areas), ""


def activation_of(seen: LayerTrace, record: Recorded) -> Activation | None:
    """Return what was recorded as numbers that lie as the trace says; None without numbers."""
    if record.tensor.is_meta:
        return None
    return _activation(seen, record.address, HOST.keep([record.tensor])[0], whole=False)


def _activation(
    seen: LayerTrace, address: ActivationKey, values: Tensor, *, whole: bool
) -> Activation:
    layout = seen.layout_of(address)
    if not whole and layout.batch:
        values = without_batch(values)
        layout = layout.of(tuple(values.shape))
    return Activation(address, values, layout)


def _taken(
    model: Model,
    seen: LayerTrace,
    records: Iterable[Recorded],
    tensors: Iterable[Tensor],
    *,
    whole: bool,
) -> Iterator[Activation]:
    """Yield what the layers were given; how it lies is known of the first tensor of each call."""
    told = set[ActivationKey]()
    modules: dict[str, nn.Module] = {}
    for record, tensor in zip(records, tensors, strict=True):
        values = tensor
        # Listed where there is a record: it takes as long as all else of a small pass.
        modules = modules or dict(named_modules(model.network, remove_duplicate=False))
        call = replace(record.address, path=())
        layout = UNKNOWN if call in told else seen.taken_layout_of(call)
        told.add(call)
        if not whole:
            module = modules.get(record.address.layer)  # None of a function
            if module is None or not is_unbatched(record.tensor, module):
                values = without_batch(values)
            layout = layout.of(tuple(values.shape))
        yield Activation(record.address, values, layout)


def _nothing_to_look_at(model: Model, seen: LayerTrace, name: str, *, on_meta: bool) -> ModelError:
    """Return the error for a layer without numbers; `on_meta`: it has a shape and no values."""
    if on_meta:
        return meta_output_error(model, name)
    if name in seen.unlike:
        return ModelError(
            say(
                "Layer {name!r} of {model} puts out {kind}, whose parts differ in shape and make "
                "no rows to look at.",
                name=name,
                model=model.title,
                kind=say(seen.unlike[name]),
            )
        )
    return ModelError(
        say("Layer {name!r} of {model} put out no tensor to look at.", name=name, model=model.title)
    )


class _Watch:
    """Hooks of one pass that record each call, tell the progress, and end it when all is there."""

    def __init__(
        self,
        seen: LayerTrace,
        names: tuple[str, ...],
        copy: Iterable[str],
        *,
        stop_early: bool,
        progress: Progress | None,
        inputs: bool,
        detach: bool,
    ) -> None:
        self.recorder = Recorder(copy, detach=detach)
        self.inputs = Recorder(copy=names, detach=detach)  # the layer itself may write into them
        self.taking = [name for name in names if name not in seen.functions.calls] * inputs
        self._takes = inputs
        self.detach = detach
        self._wanted = frozenset(names)
        self.functions = self._wanted.intersection(seen.functions.calls)
        self._calls_to_come = sum(seen.recordable[name] for name in names)
        self._stop_early = stop_early
        self._counted = frozenset(seen.leaf_calls if progress else ())
        self.reporter = ProgressReporter(progress, sum(seen.leaf_calls.values()))

    @property
    def layers(self) -> frozenset[str]:
        """Layers that need a hook."""
        return (self._wanted - self.functions) | self._counted

    def take(self, call: hooks.Call) -> None:
        """Record what a layer is given, before it can write into it."""
        self.inputs.see(replace(call, output=call.inputs))

    def take_function(self, call: hooks.Call) -> None:
        """Record what a function is given, where it is one of those wanted."""
        if self._takes and call.layer in self.functions:
            self.take(call)

    def see(self, call: hooks.Call) -> None:
        """Record one call of a hooked layer."""
        if call.layer in self._wanted:
            self._calls_to_come -= 1
            self.recorder.see(call, is_last=self._stop_early and self._calls_to_come == 0)
        if call.layer in self._counted:
            self.reporter.step()
        if self._stop_early and self._calls_to_come == 0:
            raise hooks.StopForward


def _forward(model: Model, model_input: ModelInput, watch: _Watch) -> Any:
    """Return the network's output; None where the pass was ended after its last wanted layer."""
    with (
        private_replica(model) as replica,
        hooks.before(replica, watch.taking, watch.take),
        hooks.observe(replica, watch.layers, watch.see),
        _functions_seen(replica, watch),
        nullcontext() if watch.detach else torch.enable_grad(),
    ):
        return forward_pass(model, replica, model_input.tensor, watch.reporter)


def _functions_seen(replica: nn.Module, watch: _Watch) -> AbstractContextManager[object]:
    """Return a block in which functions are seen, where any are wanted: it costs every layer."""
    if not watch.functions:
        return nullcontext()
    quiet = quiet_names(replica)
    return observe_functions(replica, quiet, watch.see, watch.take_function)


def without_batch(values: Tensor) -> Tensor:
    """Return the values without a batch dimension of 1."""
    return values[0] if values.ndim > 1 and values.shape[0] == 1 else values


def answer_for(model: Model, scores: Scores | None, image: int = 0) -> Answer | None:
    """Return what the network answered for one of the images of a pass."""
    if scores is None:
        return None
    areas = None if scores.areas is None else scores.areas[image].clone()
    boxes = None if scores.boxes is None else scores.boxes[image].clone()
    reading = Reading(scores.kind, model.output.unit)
    return Answer(scores.values[image].clone(), reading, areas, boxes)


def check_labels(model: Model, scores: Scores | None) -> None:
    """Refuse labels of another number than the classes that a network puts out."""
    labels = len(model.categories)
    if model.fixed_digest or not labels or scores is None or labels == scores.values.shape[1]:
        return
    if scores.kind == EMBEDDING:  # of a backbone whose configuration has a classifier's labels
        return
    raise ModelError(
        say(
            "categories has {label_count:,} labels, and {model} puts out {class_count:,} "
            "classes; give one label per class, in the order of its outputs.",
            label_count=labels,
            model=model.title,
            class_count=scores.values.shape[1],
        )
    )


def maker_of(model: Model) -> Callable[[], Model | None]:
    """Return a function that returns the model while somebody keeps it, or its own network."""
    known, network = ref(model), ref(model.network)
    if model.fixed_digest or model.replaced:
        return known
    blank = replace(model, network=nn.Identity())

    def made_by() -> Model | None:
        kept = network()
        return known() or (None if kept is None else replace(blank, network=kept))

    return made_by
