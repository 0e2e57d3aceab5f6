import torch

from hookviz.explaining.scores.scoring import without_relu
from hookviz.ui.lessons.parts.relu_switch import OFF, ON, PART, switched_off
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


def test_the_sentence_tells_what_the_network_says() -> None:
    scene = cat()
    with torch.no_grad():
        own = scene.model.network(scene.model_input.tensor)[0].softmax(0)
    names = scene.model.categories
    on = PART.facts(scene, with_defaults(PART, relu=ON))
    assert on["relus"] == 26
    assert names[int(own.argmax())] in str(on["outcome"])
    assert f"{100 * float(own.max()):.1f} %" in str(on["outcome"])
    off = PART.facts(scene, with_defaults(PART, relu=OFF))
    without = without_relu(scene.model, scene.model_input).scores
    assert f"Without them it says {names[int(without.argmax())]}, " in str(off["outcome"])
    assert without.argmax() != own.argmax()
    assert switched_off(star()).counts == {"ReLU": 7}
