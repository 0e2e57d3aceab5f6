"""HookViz: every channel of every conv layer of a CNN, in real numbers.

>>> import hookviz
>>> model = hookviz.load_model("shapesnet")
>>> cap = hookviz.capture(model, "assets/samples/star.jpg")
>>> grid = hookviz.make_grid(cap["stem.first.conv"])  # of (C, H, W)
>>> grid.shown
'all 32 channels'

Examples here run at the top of a checkout, where ``assets`` is, and take ``hookviz`` and ``torch``
as imported.

Each name is imported when it is first used: ``hookviz --help`` and ``hookviz doctor`` need no
torch, and the latter can say so where torch is broken.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hookviz.deprecated import warn_renamed as _warn_renamed

if TYPE_CHECKING:
    from hookviz.atlas.atlas import Atlas, AtlasChannel, AtlasImage, LayerStatistics, TopActivation
    from hookviz.atlas.files import load_atlas
    from hookviz.atlas.making import AtlasProgress, make_atlas
    from hookviz.capturing.batch import BatchActivation, CaptureBatch
    from hookviz.capturing.engine import capture
    from hookviz.capturing.feature_index import FeatureIndex
    from hookviz.capturing.feature_vectors import Features
    from hookviz.capturing.features import features as extract_features
    from hookviz.capturing.inputs import prepare_input
    from hookviz.capturing.list_layers import list_layers
    from hookviz.capturing.segmentation_maps import ClassMaps, segmentation_maps
    from hookviz.capturing.stored_activations import StoredActivations, StoredLayer
    from hookviz.capturing.streaming import stream
    from hookviz.codegen.goal_script import save_script
    from hookviz.comparing.captures import ChannelComparison, Comparison, LayerComparison, compare
    from hookviz.comparing.similarity import ChannelMatches, Similarity, similarity
    from hookviz.drawing.grid import Grid, make_grid
    from hookviz.drawing.heatmap import Heatmap
    from hookviz.drawing.paper_figure import figure
    from hookviz.errors import (
        EngineError,
        HookVizError,
        ImageError,
        ModelError,
        SettingError,
        UnknownLayerError,
        UnknownModelError,
        UnknownNameError,
        WeightsError,
    )
    from hookviz.explaining.attention.weights import AttentionMaps, attention
    from hookviz.explaining.attribution.gradients import TargetGradient
    from hookviz.explaining.image_features import LinearProbe, linear_probe
    from hookviz.explaining.layers.channel_maps import ChannelMaps, RegionSelectivity
    from hookviz.explaining.layers.conv_kernels import ConvKernels
    from hookviz.explaining.layers.recomputation import LayerCheck, Verification
    from hookviz.explaining.layers.training_health import (
        NetworkHealth,
        OutputHealth,
        WeightGradients,
    )
    from hookviz.explaining.network_map.followed_pass import BlockCall, ExecutionTrace, LayerStep
    from hookviz.explaining.network_map.mapped_network import NetworkMap, draw_network
    from hookviz.explaining.patching.part_changes import ChannelEffects
    from hookviz.explaining.patching.patch import Patching, PatchRow, patch
    from hookviz.explaining.pruning.compacted_model import CompactedModel, remove_pruned_channels
    from hookviz.explaining.pruning.pruned_network import prune
    from hookviz.explaining.scores.adversarial import PictureChange
    from hookviz.exploring import explore
    from hookviz.heatmaps import (
        effective_receptive_field,
        grad_cam,
        integrated_gradients,
        occlusion,
        saliency,
    )
    from hookviz.hooking import edits as edits
    from hookviz.hooking.gradients import Gradient, LayerGradients, on_gradients
    from hookviz.hooking.hooks import Call
    from hookviz.hooking.observe_and_edit import (
        breakpoint_at,
        edit,
        edit_inputs,
        observe,
        replace_parameters,
    )
    from hookviz.hooking.summary import summary
    from hookviz.images.reading import read as read_image
    from hookviz.lenses.contract.lens import Lens, LensResult
    from hookviz.lenses.contract.many_images import stream_lens
    from hookviz.lenses.contract.running import list_lenses, run_lens
    from hookviz.measurements import (
        ablate_channels,
        channel_maps,
        conv_kernels,
        gradient_flow,
        layer_gradient,
        network_health,
        region_selectivity,
        trace_execution,
        verify,
    )
    from hookviz.models.catalog import list_models
    from hookviz.models.checkpoints.files import save_weights
    from hookviz.models.derived_models import edited
    from hookviz.models.loading import load_model
    from hookviz.models.wrapping import wrap
    from hookviz.outputs.answer import Output
    from hookviz.pictures import Dream, dream, invert, smallest_change
    from hookviz.standalone.atlas_pages import save_atlas_pages
    from hookviz.standalone.live_page import save_live_page
    from hookviz.standalone.saving import save_page
    from hookviz.synthesis.composing import FunctionObjective, ObjectiveSum
    from hookviz.synthesis.goals import Objective
    from hookviz.synthesis.inversion import Inversion
    from hookviz.synthesis.maximizing import MaximizationResult, maximize_activation
    from hookviz.synthesis.settings import MaximizationConfig
    from hookviz.training.clipping import clip_gradients
    from hookviz.training.recording import lightning_callback, record
    from hookviz.training.training_log import TrainingFinding, TrainingLog, TrainingRow
    from hookviz.training.watching import NonFiniteTensor, NonFiniteTensorError, watch
    from hookviz.types import (
        Activation,
        ActivationKey,
        Capture,
        Crop,
        InputImage,
        LayerInfo,
        Model,
        ModelInput,
        ModelSpec,
        Preprocess,
    )
    from hookviz.ui.serving.local_app import Explorer

__version__ = "1.0.0"

__all__ = [
    "Activation",
    "ActivationKey",
    "Atlas",
    "AtlasChannel",
    "AtlasImage",
    "AtlasProgress",
    "AttentionMaps",
    "BatchActivation",
    "BlockCall",
    "Call",
    "Capture",
    "CaptureBatch",
    "ChannelComparison",
    "ChannelEffects",
    "ChannelMaps",
    "ChannelMatches",
    "ClassMaps",
    "CompactedModel",
    "Comparison",
    "ConvKernels",
    "Crop",
    "Dream",
    "EngineError",
    "ExecutionTrace",
    "Explorer",
    "FeatureIndex",
    "Features",
    "FunctionObjective",
    "Gradient",
    "Grid",
    "Heatmap",
    "HookVizError",
    "ImageError",
    "InputImage",
    "Inversion",
    "LayerCheck",
    "LayerComparison",
    "LayerGradients",
    "LayerInfo",
    "LayerStatistics",
    "LayerStep",
    "Lens",
    "LensResult",
    "LinearProbe",
    "MaximizationConfig",
    "MaximizationResult",
    "Model",
    "ModelError",
    "ModelInput",
    "ModelSpec",
    "NetworkHealth",
    "NetworkMap",
    "NonFiniteTensor",
    "NonFiniteTensorError",
    "Objective",
    "ObjectiveSum",
    "Output",
    "OutputHealth",
    "PatchRow",
    "Patching",
    "PictureChange",
    "Preprocess",
    "RegionSelectivity",
    "SettingError",
    "Similarity",
    "StoredActivations",
    "StoredLayer",
    "TargetGradient",
    "TopActivation",
    "TrainingFinding",
    "TrainingLog",
    "TrainingRow",
    "UnknownLayerError",
    "UnknownModelError",
    "UnknownNameError",
    "Verification",
    "WeightGradients",
    "WeightsError",
    "__version__",
    "ablate_channels",
    "attention",
    "breakpoint_at",
    "capture",
    "channel_maps",
    "clip_gradients",
    "compare",
    "conv_kernels",
    "draw_network",
    "dream",
    "edit",
    "edit_inputs",
    "edited",
    "effective_receptive_field",
    "explore",
    "extract_features",
    "figure",
    "grad_cam",
    "gradient_flow",
    "integrated_gradients",
    "invert",
    "layer_gradient",
    "lightning_callback",
    "linear_probe",
    "list_layers",
    "list_lenses",
    "list_models",
    "load_atlas",
    "load_model",
    "make_atlas",
    "make_grid",
    "maximize_activation",
    "network_health",
    "observe",
    "occlusion",
    "on_gradients",
    "patch",
    "prepare_input",
    "prune",
    "read_image",
    "record",
    "region_selectivity",
    "remove_pruned_channels",
    "replace_parameters",
    "run_lens",
    "saliency",
    "save_atlas_pages",
    "save_live_page",
    "save_page",
    "save_script",
    "save_weights",
    "segmentation_maps",
    "similarity",
    "smallest_change",
    "stream",
    "stream_lens",
    "summary",
    "trace_execution",
    "verify",
    "watch",
    "wrap",
]

_HOMES = {
    "atlas.atlas": ("Atlas", "AtlasImage", "AtlasChannel", "LayerStatistics", "TopActivation"),
    "atlas.making": ("AtlasProgress", "make_atlas"),
    "atlas.files": ("load_atlas",),
    "capturing.batch": ("BatchActivation", "CaptureBatch"),
    "capturing.segmentation_maps": ("ClassMaps", "segmentation_maps"),
    "capturing.engine": ("capture",),
    "capturing.feature_index": ("FeatureIndex",),
    "capturing.feature_vectors": ("Features",),
    "capturing.features": ("extract_features",),
    "capturing.inputs": ("prepare_input",),
    "capturing.list_layers": ("list_layers",),
    "capturing.stored_activations": ("StoredActivations", "StoredLayer"),
    "capturing.streaming": ("stream",),
    "codegen.goal_script": ("save_script",),
    "comparing.captures": ("ChannelComparison", "Comparison", "LayerComparison", "compare"),
    "comparing.similarity": ("ChannelMatches", "Similarity", "similarity"),
    "drawing.grid": ("Grid", "make_grid"),
    "drawing.heatmap": ("Heatmap",),
    "drawing.paper_figure": ("figure",),
    "explaining.attention.weights": ("AttentionMaps", "attention"),
    "explaining.attribution.gradients": ("TargetGradient",),
    "explaining.layers.channel_maps": ("ChannelMaps", "RegionSelectivity"),
    "explaining.layers.conv_kernels": ("ConvKernels",),
    "explaining.layers.recomputation": ("LayerCheck", "Verification"),
    "explaining.network_map.followed_pass": ("BlockCall", "ExecutionTrace", "LayerStep"),
    "explaining.image_features": ("LinearProbe", "linear_probe"),
    "explaining.network_map.mapped_network": ("NetworkMap", "draw_network"),
    "explaining.patching.patch": ("PatchRow", "Patching", "patch"),
    "explaining.pruning.pruned_network": ("prune",),
    "explaining.pruning.compacted_model": ("CompactedModel", "remove_pruned_channels"),
    "explaining.layers.training_health": ("NetworkHealth", "OutputHealth", "WeightGradients"),
    "explaining.patching.part_changes": ("ChannelEffects",),
    "explaining.scores.adversarial": ("PictureChange",),
    "exploring": ("explore",),
    "heatmaps": (
        *("effective_receptive_field", "grad_cam", "integrated_gradients", "occlusion"),
        "saliency",
    ),
    "hooking.gradients": ("Gradient", "LayerGradients", "on_gradients"),
    "hooking.hooks": ("Call",),
    "hooking.observe_and_edit": (
        *("edit_inputs", "edit", "observe"),
        *("breakpoint_at", "replace_parameters"),
    ),
    "hooking.summary": ("summary",),
    "images.reading": ("read_image",),
    "lenses.contract.lens": ("Lens", "LensResult"),
    "lenses.contract.many_images": ("stream_lens",),
    "lenses.contract.running": ("list_lenses", "run_lens"),
    "measurements": (
        *("ablate_channels", "channel_maps", "conv_kernels", "gradient_flow", "layer_gradient"),
        *("network_health", "region_selectivity", "trace_execution", "verify"),
    ),
    "models.catalog": ("list_models",),
    "models.checkpoints.files": ("save_weights",),
    "models.derived_models": ("edited",),
    "models.loading": ("load_model",),
    "models.wrapping": ("wrap",),
    "outputs.answer": ("Output",),
    "pictures": ("Dream", "dream", "invert", "smallest_change"),
    "standalone.atlas_pages": ("save_atlas_pages",),
    "standalone.live_page": ("save_live_page",),
    "standalone.saving": ("save_page",),
    "synthesis.composing": ("FunctionObjective", "ObjectiveSum"),
    "synthesis.goals": ("Objective",),
    "synthesis.inversion": ("Inversion",),
    "synthesis.maximizing": ("MaximizationResult", "maximize_activation"),
    "synthesis.settings": ("MaximizationConfig",),
    "training.clipping": ("clip_gradients",),
    "training.recording": ("lightning_callback", "record"),
    "training.training_log": ("TrainingFinding", "TrainingLog", "TrainingRow"),
    "training.watching": ("NonFiniteTensor", "NonFiniteTensorError", "watch"),
    "ui.serving.local_app": ("Explorer",),
    "types": (
        *("Activation", "ActivationKey", "Capture", "Crop", "InputImage", "LayerInfo"),
        *("Model", "ModelInput", "ModelSpec", "Preprocess"),
    ),
    "errors": tuple(
        name for name in __all__ if name.endswith("Error") and name != "NonFiniteTensorError"
    ),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
_OTHER_NAMES = {"extract_features": "features", "read_image": "read"}  # in their own module
_RENAMED = {  # old name → new one, for one version
    "Address": "ActivationKey",
    "Attention": "AttentionMaps",
    "BadTensor": "NonFiniteTensor",
    "BadTensorError": "NonFiniteTensorError",
    "ChannelAnswer": "AtlasChannel",
    "Excitation": "TopActivation",
    "Smaller": "CompactedModel",
    "Synthesis": "MaximizationResult",
    "SynthesisMethod": "MaximizationConfig",
    "before": "edit_inputs",
    "class_maps": "segmentation_maps",
    "map_network": "draw_network",
    "maximize": "maximize_activation",
    "pause_at": "breakpoint_at",
    "prepare": "prepare_input",
    "read_atlas": "load_atlas",
    "smaller": "remove_pruned_channels",
    "verbose": "summary",
}
_OLD_FUNCTIONS = ("capture_batch", "capture_each")  # which warn when they are called


if not TYPE_CHECKING:  # a type checker that sees it would believe in every name

    def __getattr__(name: str) -> Any:
        """Import a public name from its module when it is first used."""
        if name in _RENAMED:
            _warn_renamed(f"hookviz.{name}", f"hookviz.{_RENAMED[name]}")
            name = _RENAMED[name]  # not kept under its old name: each use of it warns
        if name in _OLD_FUNCTIONS:
            return getattr(import_module("hookviz.capturing.streaming"), name)
        if name == "edits":
            return import_module("hookviz.hooking.edits")
        if name not in _MODULES:
            raise AttributeError(f"module 'hookviz' has no attribute {name!r}")
        value = getattr(import_module(f"hookviz.{_MODULES[name]}"), _OTHER_NAMES.get(name, name))
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, used yet or not, and what has been imported."""
    return sorted({*globals(), *__all__})


if "ipykernel" in sys.modules or "marimo" in sys.modules:  # where captures show themselves
    import_module("hookviz.notebook.kernel").show_captures()
