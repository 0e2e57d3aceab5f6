"""The widget's client is one module that a browser can load, with all that it begins with."""

import json

from hookviz.language.catalogs import languages
from hookviz.notebook import client
from tests.node import run_node


def test_the_script_is_a_module_without_imports() -> None:
    script = client.script()
    data = json.dumps(script)
    kind = run_node(
        f"const url = URL.createObjectURL(new Blob([{data}], {{type: 'text/javascript'}}));"
        f"const text = 'data:text/javascript,' + encodeURIComponent({data});"
        "const it = await import(text); console.log(typeof it.default.render);"
    )
    assert kind.strip() == "function"


def test_it_begins_with_its_language_its_sheets_and_its_size() -> None:
    for language in languages():
        begun = client.begun(language, 500)
        assert begun["language"]["language"] == language.replace("_", "-")
        json.dumps(begun)
    assert "--hv-window: 500px" in begun["sheets"]["alone"]
    assert "--hv-accent" in begun["sheets"]["alone"]
    assert "忙" in begun["language"]["words"][BUSY]


BUSY = "The kernel is busy: this is answered when its cell has run."
