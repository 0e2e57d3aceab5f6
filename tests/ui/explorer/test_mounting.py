from pathlib import Path

from hookviz.explorer.client_files import sheet
from hookviz.ui.components import files
from hookviz.ui.components.files import script


def test_the_client_is_one_script_and_one_sheet() -> None:
    assert script("explorer.js").count("export default") == 1
    text = sheet(Path(files.__file__).parent / "explorer.css")
    assert "@import" not in text
    assert ".layer-row" in text
    assert ".stage" in text


def test_the_client_knows_nothing_of_the_page_around_it() -> None:
    """So that it can stand in a notebook and in a file."""
    for part in script("explorer.js").split("\nconst client_")[1:]:
        module = part.split("\nconst components_")[0]
        for word in ("stMain", "setTriggerValue", "fetch(", "st-key-", "streamlit"):
            assert word not in module, module[:40]
