"""What becomes of a conv layer's channels in the activation behind it."""

from hookviz.capturing.engine import capture
from hookviz.capturing.layer_trace import steps_after
from hookviz.lessons.part import Scene
from hookviz.types import Activation, Address, LayerInfo, Model, ModelInput


def activation_of(scene: Scene, layer: LayerInfo) -> str:
    """The address of the ReLU behind a conv layer; the layer itself where there is none."""
    kinds = {info.name: info.kind for info in scene.trace.layers}
    behind = (
        str(step) for step in steps_after(scene.trace, layer.name) if "ReLU" in kinds[step.layer]
    )
    return next(behind, str(Address(layer.name)))


def captured(model: Model, model_input: ModelInput, address: str) -> Activation:
    """What stands at an address, in a pass that ends there."""
    layer = Address.read(address).layer
    return capture(model, model_input, layer, logits=False)[address]
