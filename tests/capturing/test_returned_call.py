"""Whether a call passes on what another one returned."""

import torch

from hookviz.capturing.returned_call import Outputs


def test_the_same_tensor_is_passed_on_until_it_is_written_to() -> None:
    outputs, tensor = Outputs(), torch.zeros(2)
    assert [outputs.passes_on(tensor), outputs.passes_on(tensor)] == [False, True]
    tensor.add_(1)
    assert not outputs.passes_on(tensor)
    assert outputs.passes_on(tensor)
    assert not outputs.passes_on(tensor.clone())
    assert not outputs.passes_on((tensor,))
    assert not outputs.passes_on((tensor,))  # nobody looks into a pair
    with torch.inference_mode():
        uncounted = torch.zeros(2)  # whose writes nobody counts
    assert [outputs.passes_on(uncounted) for _ in range(2)] == [False, False]
