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


def test_a_channel_under_vmap_is_not_edited_as_if_it_were_a_row() -> None:
    model = as_model(seeded(KINDS["Mapped"]).eval())
    with pytest.raises(hookviz.ModelError, match=r"Layer 'odd' .* can't be changed there"):
        hookviz.run_lens("ablate", model, IMAGE, layer=ODD, channels="1")
    with pytest.raises(hookviz.ModelError, match=r"Layer 'odd' .* can't be changed there"):
        hookviz.run_lens("ablate", model, IMAGE, layer="conv", downstream=ODD)
