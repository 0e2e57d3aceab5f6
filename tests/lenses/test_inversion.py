import hookviz
from hookviz.drawing.panels import ImagePanel
from hookviz.types import Model
from tests.codegen.script_cases import LEVELS, NETWORKS, RESNET, ScriptCase
from tests.pictures import picture

SCRIPTS = (
    ScriptCase({"steps": 6, "layers": 3}, NETWORKS, 1e-3, LEVELS),
    ScriptCase({"steps": 6, "layer": "layer2", "smooth": 0.5, "seed": 3}, RESNET, 1e-3, LEVELS),
)


def test_layers_from_first_to_last(tiny: Model) -> None:
    seen: list[hookviz.LensResult] = []
    result = hookviz.run_lens(
        "inversion", tiny, picture(), layers=2, steps=20, partial=seen.append, size=32
    )
    assert result.values["layers"].tolist() == ["conv1", "conv2"]
    assert result.values["pictures"].shape == (2, 32, 32, 3)
    assert (result.values["distances"] < 1).all()
    assert [type(panel) for panel in seen[0].panels] == [type(panel) for panel in result.panels]
    images = [panel.title for panel in result.panels if isinstance(panel, ImagePanel)]
    assert images == ["The image", "conv1", "conv2"]
