import pkgutil
from importlib import import_module

from hookviz.lessons import parts as folder
from hookviz.lessons.known_parts import module_of, parts
from hookviz.ui.lessons import parts as page_folder


def test_every_part_computes_and_looks() -> None:
    computed = {module.name for module in pkgutil.iter_modules(folder.__path__)}
    looks = {module.name for module in pkgutil.iter_modules(page_folder.__path__)}
    assert computed == looks == {module_of(name) for name in parts()}
    for name in looks:
        assert callable(import_module(f"{page_folder.__name__}.{name}").show)


def test_every_part_declares_itself_for_whoever_writes_a_lesson() -> None:
    for name, part in parts().items():
        assert name == part.name
        assert part.sentence.endswith(".")
        for option in part.options:
            assert option.help.endswith(".")
            if option.default:
                assert option.check(option.default) == "", (name, option.name)
