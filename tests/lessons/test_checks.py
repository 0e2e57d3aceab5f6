from hookviz.lessons.checks import choice, whole


def test_whole_numbers() -> None:
    check = whole(-2, 12)
    assert [check(value) for value in ("-2", "0", "12")] == [""] * 3
    for wrong in ("13", "-3", "1.5", "", "x", "²", "1e3", " 1", "9" * 400):
        assert check(wrong) == "A whole number from -2 to 12 works here."


def test_names() -> None:
    check = choice(("vertical", "blur"))
    assert check("blur") == ""
    assert check("vertica") == "Did you mean 'vertical'?"
    assert check("zzz") == "There are: vertical, blur."
