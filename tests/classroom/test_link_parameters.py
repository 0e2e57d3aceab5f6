from hookviz.classroom.link_parameters import PARAMETERS
from hookviz.ui.state import SILENCED
from hookviz.ui.theme import PRESENT
from tests.ui.link_parameters import in_code


def test_each_parameter_stands_there_once() -> None:
    names = [each.name for each in PARAMETERS]
    assert len(names) == len({*names})
    assert in_code() | {SILENCED, PRESENT} <= {*names}


def test_what_is_no_link_s_is_no_slide_s() -> None:
    for each in PARAMETERS:
        assert each.is_in_slides or not each.is_for_others
        assert each.is_in_slides or not each.is_followed


def test_a_link_for_others_carries_no_seat_of_a_class_and_nothing_of_ones_own() -> None:
    own = {each.name for each in PARAMETERS if not each.is_for_others}
    assert own == {"class", "follow", "held", "present", "upload"}
