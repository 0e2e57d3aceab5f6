import inspect
from typing import Any, get_args, get_type_hints

import pytest

import hookviz


def test_all_is_complete_and_documented_and_errors_can_be_caught() -> None:
    assert sorted(hookviz.__all__) == hookviz.__all__
    assert set(hookviz._MODULES) == set(hookviz.__all__) - {"__version__"}
    assert set(hookviz.__all__) <= set(dir(hookviz))
    for name in hookviz.__all__:
        assert getattr(hookviz, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'capturd'"):
        _ = hookviz.capturd  # type: ignore[attr-defined]
    for name in hookviz.__all__:
        if name != "__version__":
            assert (getattr(hookviz, name).__doc__ or "").strip(), name
    errors = [name for name in hookviz.__all__ if name.endswith("Error")]
    assert len(errors) >= 7
    assert all(issubclass(getattr(hookviz, name), hookviz.HookVizError) for name in errors)


def test_what_public_functions_give_is_public() -> None:
    public = [getattr(hookviz, name) for name in hookviz.__all__ if name != "__version__"]
    functions = [function for function in public if inspect.isfunction(function)]
    assert len(functions) > 10
    returned = {
        kind for function in functions for kind in classes(get_type_hints(function)["return"])
    }
    assert hookviz.Features in returned
    assert {kind for kind in returned if kind.__module__.startswith("hookviz")} <= set(public)


def classes(annotation: Any) -> set[type]:
    """The classes in an annotation, such as `int` in ``tuple[int, ...]``."""
    inside: set[type] = {annotation} if isinstance(annotation, type) else set()
    return inside.union(*map(classes, get_args(annotation)))
