import base64
import json

import torch

from hookviz.drawing.grid import make_grid
from hookviz.drawing.tile_facts import tile_facts


def test_facts_are_in_the_order_of_the_tiles_and_their_key_is_of_the_picture() -> None:
    values = torch.stack([torch.full((2, 3), level) for level in (1.0, float("nan"), 3.0)])
    grid = make_grid(values, sort="max", top=3)
    facts = json.loads(json.dumps(tile_facts(grid, "three", grid.sprite), allow_nan=False))
    assert facts["order"] == [2, 0, 1]
    assert facts["stats"]["highest"] == [3.0, 1.0, None]
    assert facts["limits"] == {"low": [1.0] * 3, "high": [3.0] * 3}
    assert facts["geometry"]["tile"] == [2, 3]
    assert (facts["alt"], len(facts["palette"])) == ("three", 255)
    assert base64.b64decode(facts["bar"].partition(",")[2])[1:4] == b"PNG"
    grids = [make_grid(torch.eye(4)[None] * n) for n in (1, 2, -1)]
    one, same, other = (tile_facts(grid, "", grid.sprite) for grid in grids)
    assert one["key"] == same["key"]
    assert one["key"] != other["key"]
