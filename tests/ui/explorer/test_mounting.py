from pathlib import Path

from hookviz.explorer.client_files import sheet
from hookviz.ui.components import files
from hookviz.ui.components.files import script


def test_the_client_is_one_script_and_one_sheet_that_know_nothing_of_the_page_around_them() -> None:
    """So that it can stand in a notebook and in a file."""
    text = sheet(Path(files.__file__).parent / "explorer.css")
    assert "@import" not in text
    assert ".layer-row" in text
    assert ".stage" in text
    client = script("explorer.js")
    assert client.count("export default") == 1
    for part in client.split("\nconst client_")[1:]:
        module = part.split("\nconst components_")[0]
        for word in ("stMain", "setTriggerValue", "fetch(", "st-key-", "streamlit"):
            assert word not in module, module[:40]
