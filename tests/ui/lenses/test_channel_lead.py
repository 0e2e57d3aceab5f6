"""Which layers' channels lead to the explorer."""

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.hooking.forward_pass import own_shape
from hookviz.ui.lenses.channel_lead import _place, lead_to


def test_a_conv_layer_and_what_followed_it_are_in_the_explorer() -> None:
    model = hookviz.load_model("squeezenet")
    trace = layer_trace(model, own_shape(model))
    assert _place(trace, "features.3.squeeze") == ("features.3.squeeze", None)
    assert _place(trace, "features.3.squeeze_activation") == ("features.3.squeeze", "ReLU")
    assert _place(trace, "features.2") == ("features.0", "MaxPool2d")


def test_what_joins_several_layers_and_blocks_stand_for_themselves() -> None:
    model = hookviz.load_model("squeezenet")
    trace = layer_trace(model, own_shape(model))
    assert _place(trace, "classifier.0") == ("classifier.0", None)
    assert _place(trace, "features.3") == ("features.3", None)
    assert lead_to(trace, "features.3") is not None


def test_what_puts_out_no_maps_is_not() -> None:
    model = hookviz.load_model("shapesnet")
    trace = layer_trace(model, own_shape(model))
    assert lead_to(trace, "head") is None
    assert lead_to(trace, "nonsense") is None
