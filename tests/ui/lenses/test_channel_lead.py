"""Which layers' channels lead to the explorer."""

import hookviz
from hookviz.capturing.survey import survey
from hookviz.hooking.forward_pass import own_shape
from hookviz.ui.lenses.channel_lead import _place, lead_to


def test_a_conv_layer_and_what_followed_it_are_in_the_explorer() -> None:
    model = hookviz.load_model("squeezenet")
    surveyed = survey(model, own_shape(model))
    assert _place(surveyed, "features.3.squeeze") == ("features.3.squeeze", None)
    assert _place(surveyed, "features.3.squeeze_activation") == ("features.3.squeeze", "ReLU")
    assert _place(surveyed, "features.2") == ("features.0", "MaxPool2d")


def test_what_joins_several_layers_and_blocks_stand_for_themselves() -> None:
    model = hookviz.load_model("squeezenet")
    surveyed = survey(model, own_shape(model))
    assert _place(surveyed, "classifier.0") == ("classifier.0", None)
    assert _place(surveyed, "features.3") == ("features.3", None)
    assert lead_to(surveyed, "features.3") is not None


def test_what_puts_out_no_maps_is_not() -> None:
    model = hookviz.load_model("shapesnet")
    surveyed = survey(model, own_shape(model))
    assert lead_to(surveyed, "head") is None
    assert lead_to(surveyed, "nonsense") is None
