import threading

from hookviz.language.speaking import current, speak, speaking


def test_a_language_is_spoken_within_and_no_longer() -> None:
    with speaking("zh_CN"):
        assert current() == "zh_CN"
        with speaking("de"):
            assert current() == "de"
        assert current() == "zh_CN"
    assert current() == "en"


def test_threads_do_not_hear_each_other() -> None:
    heard = dict[str, str]()
    both = threading.Barrier(2)

    def talk(language: str) -> None:
        speak(language)
        both.wait()
        heard[language] = current()

    threads = [threading.Thread(target=talk, args=(language,)) for language in ("zh_CN", "de")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {"zh_CN": "zh_CN", "de": "de"}
    assert current() == "en"
