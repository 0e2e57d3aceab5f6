"""Short codes: what they stand for, how many there are, and for how long."""

from concurrent.futures import ThreadPoolExecutor

from hookviz.serving.short_links import ALPHABET, ShortLinks, start_of


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_code_stands_for_its_link_and_a_link_has_one_code() -> None:
    links = ShortLinks()
    code = links.code_for("model=ShapesNet", "ann")
    assert len(code) == 5
    assert set(code) <= set(ALPHABET)
    assert links.query_of(code) == links.query_of(code.upper()) == "model=ShapesNet"
    assert links.code_for("model=ShapesNet", "ann") == code
    assert links.code_for("model=ResNet-18", "ann") != code
    assert links.query_of("zzzzz") is None
    assert links.query_of("../..") is None


def test_a_code_names_its_server() -> None:
    for number in range(len(ALPHABET)):
        links = ShortLinks(server=number)
        code = links.code_for("model=ShapesNet", "ann")
        assert code[0] == start_of(number) == ALPHABET[number]
        assert len(code) == 5
        assert links.query_of(code) == "model=ShapesNet"


def test_letters_that_look_alike_are_in_no_code() -> None:
    assert not set("0o1il") & set(ALPHABET)
    assert ALPHABET.lower() == ALPHABET


def test_codes_are_bounded_and_a_flood_takes_nobody_elses() -> None:
    links = ShortLinks(most=100, of_one=10)
    mine = links.code_for("model=mine", "ann")
    flood = [links.code_for(f"channel={number}", "bob") for number in range(1000)]
    assert len(links) == 11
    assert links.query_of(mine) == "model=mine"
    assert [links.query_of(code) for code in flood[-10:]] == [
        f"channel={number}" for number in range(990, 1000)
    ]
    assert links.query_of(flood[0]) is None
    for number in range(200):
        links.code_for("model=other", f"visitor {number}")
    assert len(links) == 100
    assert links.query_of(mine) is None  # asked for longest ago


def test_a_code_ends_with_its_time_which_its_owner_begins_anew() -> None:
    clock = Clock()
    links = ShortLinks(seconds=10, clock=clock)
    kept, left = links.code_for("a=1", "ann"), links.code_for("a=2", "ann")
    clock.now = 6
    assert links.code_for("a=1", "ann") == kept
    clock.now = 10
    assert links.query_of(left) is None
    assert links.query_of(kept) == "a=1"
    clock.now = 16
    assert links.query_of(kept) is None
    assert len(links) == 0


def test_threads_at_once_get_codes_of_their_own() -> None:
    links = ShortLinks()
    with ThreadPoolExecutor(8) as threads:
        codes = list(threads.map(lambda at: links.code_for(f"channel={at}", str(at)), range(500)))
    assert len(set(codes)) == 500
    assert [links.query_of(code) for code in codes] == [f"channel={at}" for at in range(500)]
