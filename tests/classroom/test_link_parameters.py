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
