import pytest
import torch

from hookviz.synthesis.diversity import diversity_penalty


def test_alikeness_is_the_mean_cosine_of_gram_matrices() -> None:
    output = torch.randn(3, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    flat = output.flatten(2).double().numpy()
    grams = [(each @ each.T).ravel() for each in flat]
    total = sum(
        one @ other / ((one @ one) ** 0.5 * (other @ other) ** 0.5)
        for i, one in enumerate(grams)
        for j, other in enumerate(grams)
        if i != j
    )
    assert float(diversity_penalty(output)) == pytest.approx(total / 2, rel=1e-4)


def test_where_a_feature_lies_makes_no_difference() -> None:
    output = torch.rand(1, 4, 8, 8)
    both = torch.cat([output, output.roll(3, -1)])
    assert float(diversity_penalty(both)) == pytest.approx(2, rel=1e-4)
