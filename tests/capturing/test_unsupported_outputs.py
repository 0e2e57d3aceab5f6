import pytest

import hookviz
from tests.networks import as_model, random_input, seeded
from tests.odd_networks import KINDS, ODD

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is not finished there

IMAGE = random_input(5)


@pytest.mark.parametrize("lens", ["grad-cam", "effective-receptive-field"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Sparse", "a sparse tensor"),
        ("Quantised", "a quantised tensor"),
        ("Nested", "a nested tensor"),
        ("Mapped", "a tensor under torch.vmap"),
    ],
)
def test_where_no_gradient_is_taken_the_layer_and_what_it_puts_out_are_named(
    lens: str, kind: str, said: str
) -> None:
    model = as_model(seeded(KINDS[kind]).eval())
    with pytest.raises(hookviz.ModelError, match=f"Layer 'odd' .* {said}: .* Layer 'conv'"):
        hookviz.run_lens(lens, model, IMAGE, layer=ODD)
    if kind == "Mapped":  # a channel under vmap is not edited as if it were a row
        for options in ({"layer": ODD, "channels": "1"}, {"layer": "conv", "downstream": ODD}):
            with pytest.raises(hookviz.ModelError, match=r"Layer 'odd' .* can't be changed there"):
                hookviz.run_lens("ablate", model, IMAGE, **options)  # type: ignore[arg-type]
