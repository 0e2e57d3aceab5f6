"""Integrated gradients: the gradients on the way from a baseline to the input, put together."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import (
    GRADIENT_AT,
    LensCode,
    baseline,
    constants,
    in_order,
    value_of,
)


def code(recipe: LensRecipe) -> LensCode:
    """A pass there and back for each point of the way."""
    steps = constants(recipe, steps="points on the way")
    lines = in_order(*value_of(recipe), GRADIENT_AT, steps, baseline(recipe), _WAY)
    return lines, {
        "map": "attribution.sum(0)",
        "attribution": "attribution",
        "value": "value",
        "start": "start",
        "completeness_error": "error",
    }


_WAY = """\
# The points of the Gauss-Legendre rule on 0 to 1, and their weights.
points, weights = np.polynomial.legendre.leggauss(STEPS)
total = np.zeros(batch.shape[1:])
for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
    total += weight * gradient_at(baseline + point * (batch - baseline))[0]
attribution = total * (batch - baseline)[0].numpy()  # (C, H, W)
with torch.no_grad():
    value, start = value_of(batch).item(), value_of(baseline).item()
# What the pixels add comes to the difference, but for this share of it.
error = abs(attribution.sum() - (value - start)) / abs(value - start)"""
