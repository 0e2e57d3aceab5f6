import random

import numpy as np
import torch

from hookviz.hooking.generators import generators, put_generators_back


def test_the_same_numbers_come_again() -> None:
    before = generators()
    drawn = []
    for _ in range(2):
        put_generators_back(before)
        numpys = float(np.random.rand())
        drawn.append((torch.rand(3).tolist(), random.random(), numpys))
    assert drawn[0] == drawn[1]
    assert generators() != before
    put_generators_back(before)
    assert generators() == before
