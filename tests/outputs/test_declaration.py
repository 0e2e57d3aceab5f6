import pytest
import torch

import hookviz
from hookviz.outputs.declaration import KINDS, Output, as_output


def test_a_kind_a_key_an_index_and_a_function_differ() -> None:
    assert [as_output(kind).kind for kind in KINDS] == list(KINDS)
    assert as_output("scores") == Output(part="scores")
    assert as_output(1) == Output(part=1)
    assert as_output(torch.mean).part is torch.mean
    assert as_output(Output("number", unit="years")).unit == "years"
    assert Output(part=torch.mean).key != Output(part=torch.mean).key
    assert Output("binary").key == Output("binary").key
    with pytest.raises(hookviz.SettingError, match=r"output=3\.5 says nothing.*'binary'"):
        as_output(3.5)  # type: ignore[arg-type]
    with pytest.raises(hookviz.SettingError, match="Did you mean 'logits'"):
        Output("logit")
