from hookviz.explorer.view import View, choices
from hookviz.ui.components.explorer import declared_fields
from hookviz.ui.components.files import script, sheet


def test_the_client_knows_each_choice_by_its_word() -> None:
    declared = {each["word"]: each for each in declared_fields()}
    assert list(declared) == [choice.word for choice in choices().values()]
    assert declared["sort"]["default"] == "index"
    assert "mean" in declared["sort"]["values"]
    assert declared["channel"] == {
        "word": "channel",
        "default": None,
        "values": None,
        "isPage": False,
    }
    assert [word for word, each in declared.items() if each["isPage"]][:2] == ["family", "model"]


def test_what_the_client_may_write_is_what_the_view_reads() -> None:
    """A value that the client takes for a choice and the server does not would be shown as none."""
    for each in declared_fields():
        for value in each["values"] or ():
            link = View.of_link({each["word"]: value}).link()
            assert link == ({} if value == each["default"] else {each["word"]: value}), each


def test_the_client_is_one_script_and_one_sheet() -> None:
    assert script("explorer.js").count("export default") == 1
    assert "@import" not in sheet("explorer.css")
    assert ".layer-row" in sheet("explorer.css")
    assert ".stage" in sheet("explorer.css")


def test_the_client_knows_nothing_of_the_page_around_it() -> None:
    """So that it can stand in a notebook and in a file."""
    for part in script("explorer.js").split("\nconst client_")[1:]:
        module = part.split("\nconst components_")[0]
        for word in ("stMain", "setTriggerValue", "fetch(", "st-key-", "streamlit"):
            assert word not in module, module[:40]
