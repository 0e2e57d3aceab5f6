from hookviz.explorer.client_facts import (
    client_fields,
    client_sheets,
    client_words,
    colour_variables,
)
from hookviz.explorer.view import View, choices


def test_the_client_knows_each_choice_by_its_word() -> None:
    declared = {each["word"]: each for each in client_fields()}
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
    for each in client_fields():
        for value in each["values"] or ():
            link = View.of_link({each["word"]: value}).link()
            assert link == ({} if value == each["default"] else {each["word"]: value}), each


def test_words_are_those_that_the_folder_s_scripts_say() -> None:
    everything = client_words("zh_CN")
    client = client_words("zh_CN", "hookviz/explorer/client/")
    assert (client["language"], client["point"]) == ("zh-CN", ".")
    assert 0 < len(client["words"]) < len(everything["words"])
    assert client["words"]["Layers"] == everything["words"]["Layers"]
    assert client_words("en")["words"] == {}


def test_a_palette_is_a_variable_with_its_ends_beside_it() -> None:
    variables = colour_variables()
    levels = variables["--hv-RdBu_r"].split()
    assert variables["--hv-RdBu_r-below"] in levels
    assert variables["--hv-RdBu_r-above"] in levels


def test_the_tree_has_a_sheet_of_its_own() -> None:
    """Its rules are for all buttons of its root."""
    sheets = client_sheets()
    assert sorted(sheets) == ["alone", "tree"]
    assert "@import" not in "".join(sheets.values())
