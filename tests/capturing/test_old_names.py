import pytest
import torch

import hookviz


def test_old_names_warn_and_do_what_they_did(tiny: hookviz.Model) -> None:
    images = torch.rand(3, 3, 16, 16)
    with pytest.warns(DeprecationWarning, match=r"capture_batch.*hookviz\.capture\("):
        batch = hookviz.capture_batch(tiny, images, "conv1")  # type: ignore[attr-defined]
    assert isinstance(batch, tuple)
    assert batch[2]["conv1"].raw.equal(hookviz.capture(tiny, images, "conv1")[2]["conv1"].raw)
    with pytest.warns(DeprecationWarning, match=r"capture_batch"):
        assert len(hookviz.capture_batch(tiny, images[:1])) == 1  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"capture_each.*hookviz\.stream\("):
        each = list(hookviz.capture_each(tiny, [images[0]]))  # type: ignore[attr-defined]
    [(name, cap)] = each
    assert name == "image 1"
    assert cap["conv1"].raw.equal(hookviz.capture(tiny, images[0])["conv1"].raw)
