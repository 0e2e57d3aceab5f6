"""Say what a network states of its output: by its last layer, or by the library that it is from."""

from typing import Any

from torch import nn

from hookviz.models.guessing import is_of
from hookviz.outputs.declaration import (
    BOXES,
    EMBEDDING,
    LOGITS,
    MAPS,
    MULTILABEL,
    NUMBER,
    PROBABILITIES,
    Output,
)

_LAST = {
    nn.Softmax: PROBABILITIES,
    nn.Softmax2d: PROBABILITIES,
    nn.Sigmoid: PROBABILITIES,
    nn.LogSoftmax: LOGITS,
}
_TASKS = {
    "ForImageClassification": LOGITS,
    "ForImageClassificationWithTeacher": LOGITS,
    "ForVideoClassification": LOGITS,
    "ForSemanticSegmentation": MAPS,
    "ForObjectDetection": BOXES,
}
_PROBLEMS = {
    "single_label_classification": LOGITS,
    "multi_label_classification": MULTILABEL,
    "regression": NUMBER,
}
_YOLO = {  # ultralytics: probabilities beside logits; boxes with a row for each class behind 4
    "ClassificationModel": Output(PROBABILITIES, 0, is_said=False),
    "DetectionModel": Output(BOXES, lambda out: out[0][:, 4:].amax(-1), is_said=False),
}
_FAMILIES = {
    "torchvision.models.segmentation": MAPS,
    "torchvision.models.detection": BOXES,
    "torchvision.models": LOGITS,
    "segmentation_models_pytorch": MAPS,
}


def stated_output(network: nn.Module) -> Output:
    """Return what the network's output is, as far as it states that, without running it.

    Of Hugging Face's networks by their task and ``config.problem_type``, of timm's by
    ``num_classes``, of torchvision's, segmentation-models-pytorch's and ultralytics' by their
    package; of any other by a softmax, a sigmoid or an identity in the place of the last layer.

    >>> from hookviz.models.stated_output import stated_output
    >>> stated_output(torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid())).kind
    'probabilities'
    """
    if is_of(network, "ultralytics"):
        return _YOLO.get(type(network).__name__, Output(is_said=False))
    last = list(network.modules())[-1]
    kind = next((kind for layer, kind in _LAST.items() if isinstance(last, layer)), "")
    return Output(kind or _of_library(network, last), is_said=False)


def _of_library(network: nn.Module, last: nn.Module) -> str:
    config = getattr(network, "config", None)
    if is_of(network, "transformers") and config is not None:
        return _of_task(network, config)
    if isinstance(getattr(network, "pretrained_cfg", None), dict):
        return LOGITS if getattr(network, "num_classes", 0) else EMBEDDING
    kind = next((kind for package, kind in _FAMILIES.items() if is_of(network, package)), "")
    is_headless = isinstance(last, nn.Identity) and kind in ("", LOGITS)
    return EMBEDDING if is_headless else kind


def _of_task(network: nn.Module, config: Any) -> str:
    """Return what a network of Hugging Face puts out; without a task that is an embedding."""
    names = [base.__name__ for base in type(network).__mro__]
    task = next((task for task in _TASKS if any(name.endswith(task) for name in names)), None)
    if task is None:
        return EMBEDDING
    if _TASKS[task] != LOGITS:
        return _TASKS[task]
    stated = _PROBLEMS.get(str(getattr(config, "problem_type", None)))
    return stated or (NUMBER if getattr(config, "num_labels", 0) == 1 else LOGITS)
