"""Occlusion: by how much a number falls while a square is hidden, square by square."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import LensCode, baseline, constants, in_order, value_of


def code(recipe: LensRecipe) -> LensCode:
    """A pass for each position of the square."""
    stride = min(recipe.chosen["stride"], recipe.chosen["window"])
    sizes = in_order(
        constants(recipe, window="side of the square in pixels"),
        f"STRIDE = {stride}  # from one to the next",
    )
    lines = in_order(*value_of(recipe), sizes, baseline(recipe), _HIDE)
    return lines, {"map": "total / covers", "drops": "drops", "value": "value"}


_HIDE = """\
# The last square of a row or column is cut off where it reaches past the input.
high, wide = batch.shape[2:]
tops = range(0, high - WINDOW + STRIDE, STRIDE)
lefts = range(0, wide - WINDOW + STRIDE, STRIDE)
drops = np.zeros((len(tops), len(lefts)))
total, covers = np.zeros((high, wide)), np.zeros((high, wide))
with torch.no_grad():
    value = value_of(batch).item()
    for row, top in enumerate(tops):
        for column, left in enumerate(lefts):
            part = np.s_[..., top : top + WINDOW, left : left + WINDOW]
            hidden = batch.clone()
            hidden[part] = baseline[part]
            drops[row, column] = value - value_of(hidden).item()
            total[part] += drops[row, column]
            covers[part] += 1"""
