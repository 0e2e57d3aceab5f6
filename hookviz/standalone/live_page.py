"""Save a network as one HTML file that runs it: in a browser, on any image, without a server.

The page has the explorer, the network as ONNX with an output for each layer, and ONNX Runtime Web
to run it. What does not depend on the image is answered beforehand, in every language; all else
``client/live_answers.js`` computes from the layers' values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from hookviz.capturing.inputs import prepare_input, settle_input
from hookviz.capturing.layer_trace import LayerTrace, steps_after
from hookviz.drawing.colormaps import COLORMAPS, GAP_LEVEL
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.errors import HookVizError, ModelError, SettingError, UnknownLayerError
from hookviz.explaining.layers.layer_call import FollowingOp, LayerCall
from hookviz.explorer.client_files import DARK, LIGHT, client_fields, client_sheets, sheet
from hookviz.explorer.layers import call_words, captured, resolve, unique_kind
from hookviz.explorer.origin import call_or_why_not, upstream_of
from hookviz.explorer.subject import Subject, make_subject
from hookviz.explorer.view import View
from hookviz.images.reading import read
from hookviz.images.samples import samples as own_samples
from hookviz.language.catalogs import languages
from hookviz.language.naming import class_label
from hookviz.language.saying import mark, say
from hookviz.models.wrapping import as_model
from hookviz.outputs.answer import LOGITS, PROBABILITIES
from hookviz.paths import path_ending_in, write_file
from hookviz.settings import ASSETS
from hookviz.standalone.client_page import (
    CLIENT,
    columns,
    deflated,
    in_base64,
    packed,
    page_html,
    page_script,
    whole_floats,
)
from hookviz.standalone.onnx_network import (
    WEIGHTS_NAME,
    OnnxNetwork,
    check_libraries,
    export_network,
)
from hookviz.standalone.recording import (
    answer_in_languages,
    call_facts,
    in_every_language,
    language_facts,
    palette_text,
    rounded,
)
from hookviz.types import (
    ActivationKey,
    LayerInfo,
    Model,
    Preprocess,
    Progress,
    ignore,
)
from hookviz.wording import byte_size, number

VERSION = "1.30.0"
"""Version of ONNX Runtime Web, which `scripts/engine.py` fetches."""

ENGINE = ASSETS / "engine"
"""The folder of its files."""

SCRIPT, WASM = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
"""Its script, a module, and its program, which runs in one thread too; both lie there gzipped."""

LICENCE = "LICENSE-onnxruntime"
"""Its licence, MIT."""

MOST_BYTES = 100_000_000
"""Bytes of a page, at most, unless more are asked for."""

_SUFFIXES = (".html", ".htm")
_MOST_FILE = 1_000_000  # bytes of a photograph's own file that goes into a page
_QUALITY = 92  # of the JPEG of one that does not
_SIDE_PX = 640  # of its longer side
_CHOSEN = ("layer", "channel", "cell", "sort", "top", "scale", "colours", "after", "output")
_AS_SHARES = (LOGITS, PROBABILITIES)


class _Step(NamedTuple):
    """Output that a view can show: of a layer, or of a step after it.

    Attributes:
        field: the field of a view that chooses it, ``"after"`` or ``"output"``.
        word: its name in a link.
        address: whose output it is.
    """

    field: Literal["after", "output"]
    word: str
    address: ActivationKey

    def in_view(self, view: View) -> View:
        """Return a view of the layer that shows this output."""
        if self.field == "after":
            return replace(view, after=self.word)
        return replace(view, output=self.word)


def save_live_page(
    model: Model | nn.Module,
    path: str | PathLike[str],
    *,
    samples: Iterable[Any] | str | PathLike[str] = (),
    layers: str | Iterable[str] | None = None,
    most_bytes: int = MOST_BYTES,
    progress: Progress = ignore,
) -> Path:
    """Save a network as one HTML file that runs it on any image, and return the path.

    A double click opens it, without a server and without a network. It shows every channel of
    every layer for a photograph that is dropped, pasted, opened or comes from the camera: in all
    scales and colours, with the sum of any cell of a convolution, in every language and both
    themes. Each layer is compared with `capture` before the file is written: on the samples and on
    noise no value differs by more than 1e-4 of its layer's largest.

    It takes ``pip install 'hookviz[live]'``. The computing is ONNX Runtime Web's, in float32.

    Args:
        model: from `load_model` or `wrap`, or your own module.
        path: ends in ``.html``.
        samples: one photograph that the page offers, or several; it opens with the first. Those
            that come with HookViz by default.
        layers: names of those to look at; all convolutions by default, and of a transformer its
            blocks.
        most_bytes: a larger page is refused.
        progress: called with the share done; what it raises ends the run.

    Raises:
        ModelError: the network can't be exported, which names the operation, or computes something
            else as ONNX, which names the layer; or its input is no ordinary image.
        HookVizError: a library is missing, or the page would be too large.
        UnknownLayerError: a layer does not exist, or is none that can be shown.
        SettingError: the path ends in something else, or can't be written.
        ImageError: a sample can't be read.

    >>> import tempfile
    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = "assets/samples/star.jpg"
    ...     path = hookviz.save_live_page(network, f"{folder}/net.html", samples=sample)
    >>> path.name
    'net.html'
    """
    file = path_ending_in(path, _SUFFIXES, SettingError)
    check_libraries()
    model = as_model(model)
    steps = _steps_of_input(model)
    pictures = _pictures(samples)
    images = [prepare_input(model, each.data) for each in pictures]
    subject = make_subject(model, images[0].tensor)
    trace = subject.trace
    names = _layers(model, trace, layers)
    after = _outputs(trace, names)
    needed = list(dict.fromkeys(step.address.layer for each in after for step in each))
    convs = [each.name for each in trace.convs if each.name in names and each.kind == "Conv2d"]
    network = export_network(model, images, needed, convs, lambda share: progress(0.7 * share))
    facts = _facts(subject, network, after, names)
    facts["preprocess"] = asdict(steps)
    facts |= in_every_language(lambda: {"samples": [each.facts() for each in pictures]})
    calls, blocks = _calls(subject, network, names, progress)
    facts["calls"] = calls
    first = {"page": packed(facts)}
    rest = blocks | {f"sample-{at}": in_base64(each.data) for at, each in enumerate(pictures)}
    rest |= {
        "worker": in_base64(page_script("live_worker.js").encode()),
        "engine": in_base64((ENGINE / f"{SCRIPT}.gz").read_bytes()),
        "wasm": in_base64((ENGINE / f"{WASM}.gz").read_bytes()),
        "graph": deflated(network.graph),
        "weights": deflated(network.weights),
        "licence": in_base64((ENGINE / LICENCE).read_bytes()),
    }
    page = page_html(model.title, first, rest, script_name="in_live.js", runs=True).encode()
    if len(page) > most_bytes:
        raise HookVizError(
            say(
                "The page takes {size}, and may take {most} (most_bytes, --most-bytes): its "
                "weights alone are {weights}.",
                size=byte_size(len(page)),
                most=byte_size(most_bytes),
                weights=byte_size(len(network.weights)),
            )
        )
    write_file(file, page, SettingError)
    progress(1.0)
    return file


def _steps_of_input(model: Model) -> Preprocess:
    """Return how images become a model's input, where a browser can do the same.

    Raises:
        ModelError: it can't.
    """
    settle_input(model)
    steps = model.preprocess
    if not isinstance(steps, Preprocess) or steps.frames or steps.channels not in (1, 3):
        raise ModelError(
            say(
                "A live page takes photographs of one or three channels, resized, cropped and "
                "normalised; {model} has an input of its own. hookviz page saves what it computes "
                "for one input.",
                model=model.title,
            )
        )
    return steps


class _Picture(NamedTuple):
    """Photograph in a page: its title, its description, its type and its file.

    Title and description of one that comes with HookViz are there in every language.
    """

    title: str
    alt: str
    mime: str
    data: bytes
    is_own: bool = False

    def facts(self) -> dict[str, str]:
        """Return its title, description and type, in the current language."""
        title, alt = (say(self.title), say(self.alt)) if self.is_own else (self.title, self.alt)
        return {"title": title, "alt": alt, "mime": self.mime}


def _pictures(samples: Iterable[Any] | str | PathLike[str]) -> list[_Picture]:
    """Return the photographs as files that a browser reads."""
    listed = [samples] if isinstance(samples, str | bytes | PathLike) else list(samples)
    if not listed:
        return [
            _Picture(each.title, each.alt, "image/jpeg", each.path.read_bytes(), is_own=True)
            for each in own_samples()
        ]
    return [_picture(each) for each in listed]


def _picture(source: Any) -> _Picture:
    image = read(source)
    data = source if isinstance(source, bytes) else b""
    if isinstance(source, str | PathLike) and Path(source).is_file():
        data = Path(source).read_bytes()
    for begins, mime in ((b"\xff\xd8", "image/jpeg"), (b"\x89PNG", "image/png")):
        if data.startswith(begins) and len(data) <= _MOST_FILE:
            return _Picture(image.name, image.name, mime, data)
    small = image.pixels
    if max(small.shape) > _SIDE_PX:
        small = shrunk(small, _SIDE_PX)
    return _Picture(image.name, image.name, "image/jpeg", encode_jpeg(small, quality=_QUALITY))


def _layers(model: Model, trace: LayerTrace, layers: str | Iterable[str] | None) -> list[str]:
    """Return the names of the layers to look at, in order of execution."""
    known = {each.name: each for each in trace.maps}
    names = [each.name for each in trace.usual if each.name in known]
    if layers is not None:
        wanted = [layers] if isinstance(layers, str) else list(layers)
        for name in wanted:
            if name not in known:
                raise UnknownLayerError(say("layer with maps"), name, known)
        names = [name for name in known if name in wanted]
    if not names:
        raise HookVizError(say("{model} has no layer that puts out maps.", model=model.title))
    return names


def _outputs(trace: LayerTrace, names: Sequence[str]) -> list[list[_Step]]:
    """Return for each layer the outputs that can be chosen, the layer's own first.

    Of a convolution they are those of the modules after it: batch norm, activation, pooling.
    """
    convs = {each.name for each in trace.convs}
    kinds = {each.name: each.kind for each in trace.listed}
    outputs = []
    for name in names:
        if name not in convs:
            every = trace.shown_outputs[name]
            outputs.append([_Step("output", call_words(each), each) for each in every])
            continue
        steps = {kinds[name]: ActivationKey(name)}
        for address in steps_after(trace, name):
            if address in trace.map_outputs.get(address.layer, ()):
                steps[unique_kind(kinds[address.layer], steps)] = address
        outputs.append([_Step("after", *each) for each in steps.items()])
    return outputs


def _facts(
    subject: Subject,
    network: OnnxNetwork,
    outputs: Sequence[Sequence[_Step]],
    names: Sequence[str],
) -> dict[str, Any]:
    """Return the facts of a page that hold for every image."""
    views = [
        [step.in_view(_view_of(subject, name)) for step in each]
        for name, each in zip(names, outputs, strict=True)
    ]
    rows = [answer_in_languages(subject, "layers", each[0]) for each in views]
    answer = captured(subject, resolve(subject, views[0][0])).answer  # as the head has it
    kind = answer.reading.kind if answer is not None and network.has_scores else None
    scores = len(answer.scores) if answer is not None and kind in (*_AS_SHARES, "") else 0
    head = answer_in_languages(subject, "head")
    return {
        "names": list(names),
        "steps": [
            [
                {
                    "word": step.word,
                    "address": str(step.address),
                    "output": network.outputs[step.address],
                }
                for step in each
            ]
            for each in outputs
        ],
        "view": {},
        "fields": [each for each in client_fields() if each["word"] in _CHOSEN],
        "languages": [language_facts(each) for each in languages()],
        "sheets": {
            name: text + sheet(CLIENT / "in_live.css") for name, text in client_sheets().items()
        },
        "palettes": {name: palette_text(name) for name in COLORMAPS},
        "colourMaps": {
            name: {
                "low": each.low,
                "middle": each.middle,
                "high": each.high,
                "diverging": each.diverging,
            }
            for name, each in COLORMAPS.items()
        },
        "themes": [theme._asdict() for theme in (LIGHT, DARK)],
        "gap": GAP_LEVEL,
        "layers": columns(
            [_layer_row(each, of, names) for each, of in zip(rows, outputs, strict=True)]
        ),
        "fieldsOf": columns(
            [
                rounded(answer_in_languages(subject, "field", view))
                for each in views
                for view in each
            ]
        ),
        "tree": _tree(subject, names),
        "hasScores": bool(scores),
        "hasShares": kind in _AS_SHARES,
        "isSoftmax": kind == LOGITS,
        "weightsName": WEIGHTS_NAME,
        **in_every_language(
            lambda: {
                "classes": [class_label(at, subject.model.categories) for at in range(scores)],
                "missing": _about(subject.model, network),
                "model": subject.model.title,
            }
        ),
        "note": head["note"],
    }


def _about(model: Model, network: OnnxNetwork) -> str:
    return say(
        "This page runs {model} itself, by ONNX Runtime Web {version} in float32, and sends "
        "nothing anywhere. When it was made, each layer was compared with PyTorch: {error} of its "
        "largest value is the largest difference. Lenses, lessons and other networks are in the "
        "app, which hookviz run starts.",
        model=model.title,
        version=VERSION,
        error=number(network.error),
    )


def _view_of(subject: Subject, name: str) -> View:
    """Return the view that shows a layer: of the list of all with maps where it needs that one."""
    is_usual = any(each.name == name for each in subject.trace.usual)
    return View(layer=name, layers="conv" if is_usual else "maps")


def _layer_row(
    facts: dict[str, Any], outputs: Sequence[_Step], names: Sequence[str]
) -> dict[str, Any]:
    """Return the answer about a layer with those choices that a live page has."""
    words = {each.word for each in outputs}
    steps = facts["steps"]
    if steps is not None:
        known = [each for each in steps["options"] if each["value"] in words]
        steps = steps | {"options": known} if len(known) > 1 else None
    options = [{"name": name, "number": at + 1} for at, name in enumerate(names)]
    return facts | {"listed": None, "options": options, "steps": steps, "patches": None}


def _tree(subject: Subject, names: Sequence[str]) -> dict[str, Any]:
    """Return the layers in the blocks that they are parts of, without small pictures."""
    trace = subject.trace
    is_usual = {each.name for each in trace.usual}.issuperset(names)
    listed = trace.usual if is_usual else trace.maps
    offered = [each for each in listed if each.name in set(names)]
    facts = answer_in_languages(replace(subject, offered=offered), "tree")
    return facts | {"previews": None}


def _calls(
    subject: Subject, network: OnnxNetwork, names: Sequence[str], progress: Progress
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return for each layer the call that its cells are sums of, or why they are none.

    The kernels that are not among the weights as they are, such as those of a weight norm, are
    blocks of the page.
    """
    calls, blocks = list[dict[str, Any]](), dict[str, str]()
    for at, name in enumerate(names):
        resolved = resolve(subject, _view_of(subject, name))
        call = call_or_why_not(subject, resolved)
        if isinstance(call, LayerCall) and name in network.inputs and _has_zeros_around(call):
            facts = _call(subject, network, resolved.layer, call)
            if facts["weights"] is None:
                blocks[f"kernel-{at}"] = whole_floats(call.kernel.numpy())
            calls.append(facts)
        else:
            why = call if isinstance(call, str) else None
            calls.append(in_every_language(partial(_unexplained, why)))
        progress(0.7 + 0.25 * (at + 1) / len(names))
    return calls, blocks


def _unexplained(why: str | None) -> dict[str, Any]:
    return {"info": why or say(_NO_SUM)}


_NO_SUM = mark("A live page has the sums of convolutions alone; the app has those of this layer.")


def _has_zeros_around(call: LayerCall) -> bool:
    """Return whether a call's input has zeros around it, as a page puts them there."""
    (top, left), (height, width) = call.corner, call.size
    rows, columns_ = call.padded.shape[1:]
    around = (left, columns_ - left - width, top, rows - top - height)
    return torch.equal(functional.pad(call.input, around), call.padded)


def _is_relu(step: FollowingOp) -> bool:
    """Return whether a step is a ReLU, be it a module or a function."""
    return step.kind.lower().rstrip("_") == "relu"


def _call(
    subject: Subject, network: OnnxNetwork, layer: LayerInfo, call: LayerCall
) -> dict[str, Any]:
    upstream = upstream_of(subject, layer)
    steps = []
    for step in call.steps:
        address = next((each for each in network.outputs if each.layer == step.layer), None)
        if address is None and step.norm is None and not _is_relu(step):
            break  # nothing here computes it
        steps.append(None if address is None else network.outputs[address])
    facts = in_every_language(lambda: call_facts(call, upstream))
    facts["steps"] = [  # as many as are computed
        each | {"output": output, "isRelu": _is_relu(step)}
        for each, output, step in zip(facts["steps"], steps, call.steps, strict=False)
    ]
    name = f"{layer.name}.weight"
    at = network.offsets.get(name)
    stored = None if at is None else network.weights[at : at + call.kernel.nbytes]
    is_there = stored == call.kernel.numpy().astype("<f4").tobytes()
    return facts | {
        "size": list(call.size),
        "taken": network.inputs[layer.name],
        "weights": at if is_there else None,
    }
