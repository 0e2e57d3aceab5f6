import pytest

from hookviz.errors import SettingError, UnknownNameError
from hookviz.settings import ASSETS, Settings, read_settings


def test_defaults_and_choices() -> None:
    assert read_settings({"PATH": "/bin"}) == Settings()
    chosen = read_settings({"HOOKVIZ_SESSION_MB": " 12 ", "HOOKVIZ_WEIGHTS_URL": "http://x/"})
    assert (chosen.session_mb, chosen.weights_url) == (12, "http://x/")


@pytest.mark.parametrize("value", ["", "0", "-3", "many", "1.5", "²"])
def test_a_value_that_means_nothing_is_named(value: str) -> None:
    with pytest.raises(SettingError, match=r"HOOKVIZ_CACHE_MB=.*without it HookViz takes 1024"):
        read_settings({"HOOKVIZ_CACHE_MB": value})


def test_a_misspelled_setting_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="HOOKVIZ_SESSION_MB"):
        read_settings({"HOOKVIZ_SESION_MB": "3"})


def test_assets_are_there() -> None:
    assert ASSETS.is_dir()
