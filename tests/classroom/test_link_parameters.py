from hookviz.classroom.link_parameters import PARAMETERS
from hookviz.ui.state import SILENCED
from hookviz.ui.theme import PRESENT
from tests.ui.link_parameters import in_code


def test_parameters_of_ones_own_are_in_no_link_and_no_slide() -> None:
    names = [each.name for each in PARAMETERS]
    assert len(names) == len({*names})
    assert in_code() | {SILENCED, PRESENT} <= {*names}
    for each in PARAMETERS:
        assert each.is_in_slides or not each.is_for_others
        assert each.is_in_slides or not each.is_followed
    own = {each.name for each in PARAMETERS if not each.is_for_others}
    assert own == {"class", "follow", "held", "present", "upload"}
