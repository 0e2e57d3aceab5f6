import logging
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from hookviz import isolation
from hookviz.ui import resources, serving


def test_warming_up_loads_the_bundled_model_and_leaves_nothing_kept() -> None:
    serving.warm_up()
    model = resources.load("shapesnet", "pretrained")
    assert len(isolation._idle[model.network]) >= 1
    assert resources.load("shapesnet", "pretrained") is model


def test_an_error_of_ours_is_logged_and_shown_without_its_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = tmp_path / "broken.py"
    script.write_text(
        "from hookviz.ui import serving\n"
        "assert serving.on_script_error(ZeroDivisionError('secret detail'))\n"
    )
    with caplog.at_level(logging.ERROR, logger="hookviz"):
        page = AppTest.from_file(str(script)).run()
    assert "Something went wrong on our side" in page.error[0].value
    assert "secret" not in page.error[0].value
    assert caplog.records[0].exc_info is not None
