import pytest

import hookviz


def test_all_is_complete_and_true() -> None:
    assert sorted(hookviz.__all__) == hookviz.__all__
    assert set(hookviz._MODULES) == set(hookviz.__all__) - {"__version__"}
    assert set(hookviz.__all__) <= set(dir(hookviz))
    for name in hookviz.__all__:
        assert getattr(hookviz, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'capturd'"):
        _ = hookviz.capturd  # type: ignore[attr-defined]


def test_every_public_name_says_what_it_is() -> None:
    for name in hookviz.__all__:
        if name != "__version__":
            assert (getattr(hookviz, name).__doc__ or "").strip(), name


def test_every_error_is_one_that_a_person_can_catch() -> None:
    errors = [name for name in hookviz.__all__ if name.endswith("Error")]
    assert len(errors) >= 7
    assert all(issubclass(getattr(hookviz, name), hookviz.HookVizError) for name in errors)
