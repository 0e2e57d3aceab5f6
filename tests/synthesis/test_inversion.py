import pytest
import torch
from torch import nn

import hookviz
from hookviz.synthesis.inversion import begin_inversion, inversion
from hookviz.types import Model
from tests.networks import as_model, seeded
from tests.pictures import picture
from tests.synthesis.networks import correlation, normalised


def test_an_early_layer_gives_the_image_back_and_a_late_one_less() -> None:
    model = hookviz.load_model("squeezenet")
    model_input = hookviz.prepare_input(model, "assets/samples/cat.jpg", size=96)
    image = model_input.tensor[0]
    correlations, distances = [], []
    for layer in ("features.0", "features.12.expand3x3"):
        optimization = begin_inversion(model, model_input, layer)
        optimization.run(120)
        result = inversion(optimization)
        correlations.append(
            correlation(torch.from_numpy(result.picture.copy()).movedim(-1, 0), image)
        )
        distances.append(result.distance)
        capture = hookviz.capture(model, normalised(optimization.tensor(), model), layer)
        wanted = hookviz.capture(model, model_input, layer)[layer].values
        distance = (capture[layer].values - wanted).square().sum() / wanted.square().sum()
        assert result.distance == pytest.approx(float(distance), rel=1e-3)
    assert correlations[0] > 0.9
    assert correlations[1] < correlations[0]
    assert max(distances) < 0.1


def test_errors(tiny: Model) -> None:
    model_input = hookviz.prepare_input(tiny, picture())
    with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
        begin_inversion(tiny, model_input, "conv9")
    dark = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Threshold(1e9, 0.0))
    with pytest.raises(hookviz.ModelError, match="nothing can be rebuilt"):
        begin_inversion(as_model(seeded(lambda: dark)), model_input, "1")
