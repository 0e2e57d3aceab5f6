import pytest

from hookviz.classroom.codes import LENGTH, LETTERS, new_code, read_code, server_of, shown_code


def test_a_code_is_read_however_it_is_typed() -> None:
    for _ in range(50):
        code = new_code()
        assert len(code) == LENGTH
        assert set(code) <= set(LETTERS)
        assert read_code(shown_code(code)) == code
        assert read_code(f" {code[:2]}-{code[2:].lower()}.") == code


@pytest.mark.parametrize("typed", ["", "K7M", "K7MP3XX", "K7MP3O", "Ⅷ7MP3X", "K7MP3X" * 1000, "\0"])
def test_what_is_no_code_is_none(typed: str) -> None:
    assert read_code(typed) == ""


def test_codes_come_in_no_order_and_name_their_server() -> None:
    codes = [new_code() for _ in range(400)]
    assert len(set(codes)) == len(codes)
    for index in range(LENGTH):
        assert len({code[index] for code in codes}) > len(LETTERS) // 2
    for group in ("O0", "I1L", "S5", "B8"):
        assert len(set(group) & set(LETTERS)) <= 1
    assert [server_of(new_code(number)) for number in range(20)] == list(range(20))
