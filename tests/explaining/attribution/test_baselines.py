import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import functional as F

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.errors import SettingError
from hookviz.explaining.attribution.baselines import baseline_of
from tests.networks import Tiny, seeded
from tests.pictures import picture


@pytest.mark.parametrize(("kind", "level"), [("black", 0), ("grey", 127.5)])
def test_a_colour_is_what_the_network_gets_of_a_picture_of_that_colour(
    tiny: hookviz.Model, kind: str, level: float
) -> None:
    model_input = prepare(tiny, picture())
    plain = prepare(tiny, Image.new("RGB", (40, 30), (int(level),) * 3)).tensor
    baseline = baseline_of(tiny, model_input, kind)
    assert baseline.shape == model_input.tensor.shape
    torch.testing.assert_close(baseline, plain, rtol=0, atol=0.5 / 255 / 0.224 + 1e-6)


def test_nothing_of_the_input_is_written_to(tiny: hookviz.Model) -> None:
    model_input = prepare(tiny, picture())
    before = model_input.tensor.clone()
    for kind in ("zero", "grey", "black", "blurred"):
        baseline_of(tiny, model_input, kind).add_(1)
    assert torch.equal(before, model_input.tensor)
    assert not baseline_of(tiny, model_input, "zero").any()


@pytest.mark.parametrize("shape", [(64, 48), (5, 40), (1, 16)])
def test_blurred_is_a_gaussian(tiny: hookviz.Model, shape: tuple[int, int]) -> None:
    from scipy import ndimage  # noqa: PLC0415

    source = torch.Generator().manual_seed(0)
    model_input = prepare(tiny, torch.randn(1, 3, *shape, generator=source, dtype=torch.float64))
    deviation = min(shape) / 16
    reach = [min(side - 1, round(3 * deviation)) for side in shape]
    expected = model_input.tensor[0].numpy()
    for axis in (0, 1):
        expected = ndimage.gaussian_filter1d(
            expected, deviation, axis=1 + axis, mode="mirror", radius=reach[axis]
        )
    np.testing.assert_allclose(baseline_of(tiny, model_input, "blurred")[0], expected, atol=1e-12)


def test_a_colour_is_refused_where_it_is_not_known_how_it_is_taken_in() -> None:
    def own(image: Image.Image) -> Tensor:
        values: Tensor = F.pil_to_tensor(image.resize((16, 16))).float()
        return values

    model = hookviz.wrap(seeded(Tiny), own)
    model_input = prepare(model, picture())
    with pytest.raises(SettingError, match="'zero' and 'blurred' work"):
        baseline_of(model, model_input, "black")
    assert baseline_of(model, model_input, "blurred").shape == (1, 3, 16, 16)
