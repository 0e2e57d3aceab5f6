"""A region of the picture: which channels of a layer answer more to it than to the rest."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import HOLD, LensCode, constants, in_order


def code(recipe: LensRecipe) -> LensCode:
    """Each channel's mean inside of the region against its mean outside."""
    rectangle = str(recipe.chosen["region"]).startswith("rect:")
    says = _RECTANGLE_SAYS if rectangle else _BRUSH_SAYS
    marks = _RECTANGLE if rectangle else _BRUSH
    lines = (constants(recipe, layer="", region=says), HOLD, _MAPS, marks, _COVER, _COMPARE)
    names = ("inside", "outside", "deviation", "score", "weights", "ranking")
    return in_order(*lines), {name: name for name in names}


_RECTANGLE_SAYS = "left, top, right, bottom, as shares"
_BRUSH_SAYS = "runs of cells, unmarked and marked in turn"
_MAPS = """\
with torch.no_grad():
    model(batch)
handle.remove()
maps = outputs[0][0].numpy().astype(np.float64)  # of the layer's first call, (C, H, W)"""
_RECTANGLE = """\
left, top, right, bottom = map(float, REGION.removeprefix("rect:").split(","))
marks = np.ones((1, 1))
down, across = np.sort((top, bottom)), np.sort((left, right))  # the edges of what is marked"""
_BRUSH = """\
size, runs = REGION.removeprefix("brush:").split(":")
columns, rows = map(int, size.split("x"))
marks = np.zeros(rows * columns)
ends = np.cumsum([int(run) for run in runs.split(".")])
for start, end in zip(ends[0::2], ends[1::2], strict=False):
    marks[start:end] = 1
marks = marks.reshape(rows, columns)
down, across = np.linspace(0, 1, rows + 1), np.linspace(0, 1, columns + 1)  # edges of its cells"""
_COVER = '''

def overlap(edges, count):
    """The share of each of `count` equal parts of 0…1 between each two edges."""
    parts = np.linspace(0, 1, count + 1)
    low = np.maximum(parts[:-1, None], edges[None, :-1])
    high = np.minimum(parts[1:, None], edges[None, 1:])
    return np.clip(high - low, 0, None) * count

'''
_COMPARE = """\
# The share of each cell of the map that is marked, (H, W).
weights = overlap(down, maps.shape[1]) @ marks @ overlap(across, maps.shape[2]).T
weights = np.clip(weights, 0, 1)
inside, outside, deviation, score = np.full((4, len(maps)), np.nan)
for channel, values in enumerate(maps):
    finite = np.isfinite(values)
    inner, wide = weights[finite], values[finite]
    if inner.sum() > 0 and (1 - inner).sum() > 0:
        inside[channel] = np.average(wide, weights=inner)
        outside[channel] = np.average(wide, weights=1 - inner)
        deviation[channel] = wide.std() if wide.min() < wide.max() else 0
        score[channel] = 0
        if deviation[channel] > 0:
            score[channel] = (inside[channel] - outside[channel]) / deviation[channel]
ranking = np.argsort(-score, kind="stable")  # highest first
ranking = ranking[np.isfinite(score[ranking])]"""
