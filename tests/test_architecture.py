import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import hookviz

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hookviz"
TESTS = ROOT / "tests"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}

_MOST_LINES = 600
REASON = "Over 600 lines:"


@cache
def trees() -> dict[str, ast.Module]:
    """Every module, parsed."""
    return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def test_imports_point_down_only() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_only_one_file_registers_hooks() -> None:
    guilty = {
        name
        for name, path in MODULES.items()
        if "register_" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and re.fullmatch(r"register_\w*hook", node.attr)
    }
    assert guilty == {"hooking/hooks.py"}


def test_ray_is_loaded_by_its_own_engine_alone() -> None:
    """A module that has it, or one of those, at its top is loaded with it."""
    loading, parts = {"ray"}, ("engine", "worker")
    for _ in MODULES:
        loading_modules = {
            f"hookviz.{name.removesuffix('.py').replace('/', '.')}"
            for name, tree in trees().items()
            if _loads(tree, loading)
        }
        if loading_modules <= loading:
            break
        loading |= loading_modules
    assert loading == {"ray", *(f"hookviz.engines.ray_{part}" for part in parts)}


def _loads(module: ast.Module, wanted: set[str]) -> bool:
    """Whether one of these is imported at the top of a module."""
    for node in module.body:
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
        else:
            continue
        if any(name in wanted or name.partition(".")[0] in wanted for name in names):
            return True
    return False


def test_pyplot_is_never_used() -> None:
    assert not any(
        "pyplot" in path.read_text("utf-8").replace("never `pyplot`", "")
        for path in MODULES.values()
    )


def test_no_file_is_longer_than_an_idea() -> None:
    """A longer one says why in its docstring, in a sentence that begins as `REASON` does."""
    long = {
        name: lines
        for name, path in MODULES.items()
        if (lines := len(path.read_text("utf-8").splitlines())) > _MOST_LINES
        and REASON not in (ast.get_docstring(trees()[name]) or "")
    }
    assert long == {}


def test_conditions_are_not_nested_and_arguments_not_starred_from_a_tuple() -> None:
    """`a if b else c if d else e`, and `f(*(a, b))`."""
    hard = [
        f"{name}:{node.lineno}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.IfExp)
            and any(isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse))
        )
        or (
            isinstance(node, ast.Call)
            and any(
                isinstance(each, ast.Starred)
                and isinstance(each.value, ast.Tuple)
                and not any(isinstance(part, ast.Starred) for part in each.value.elts)
                for each in node.args
            )
        )
    ]
    assert hard == []


def test_a_package_says_what_belongs_there_and_has_no_public_name() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        tree = ast.parse(path.read_text("utf-8"))
        assert ast.get_docstring(tree), path
        assert path.parent == PACKAGE or len(tree.body) == 1, path
    # it would take its place in `hookviz` once it is imported
    assert {path.stem for path in PACKAGE.iterdir()} & set(hookviz.__all__) == set()


def test_the_library_imports_without_streamlit() -> None:
    program = "import sys, hookviz; assert 'streamlit' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


SHOWN_ELSEWHERE = {
    "processes that read, crash and hang in reader/test_wall.py": (
        "reader/answer_file reader/fork_server reader/server_process"
    ),
    "a class follows, lets go, votes and ends in browsers in e2e/test_classroom.py": (
        "ui/classroom/class_bar"
    ),
    "a class guesses channels in browsers in e2e/test_class_game.py": ("ui/classroom/guess_game"),
    "declarations, of which every other test is a use": ("models/model_source"),
    "edited, run, stopped and refused in a browser in e2e/test_lesson_traps.py, and what is "
    "run in lessons/test_own_code.py and test_scripts.py": ("lessons/own_code_process"),
    "what an atlas is made with, gone through whole, stopped, killed and joined in "
    "atlas/test_making.py": ("atlas/part_folder"),
    "its pixels and files are checked byte by byte in drawing/test_grid.py": ("drawing/layout"),
    "what it writes is run as a script in codegen/test_picture_script.py": ("codegen/facts"),
    "runs on the workers of a real cluster in engines/test_ray_engine.py": ("engines/ray_worker"),
    "its facts are compared in ui/lessons/test_figures.py": ("ui/lessons/parts/each_sample"),
    "capturing/test_odd_networks.py": ("explaining/layers/recomputation"),
    "the passes of capture, which capturing/test_engine.py, test_batch.py and "
    "test_streaming.py look into": ("capturing/recorded_pass capturing/batch_images"),
    "run on every kind of conv layer in lenses/test_kernels.py": ("explaining/layers/conv_kernels"),
    "read by nearly every test of images, and in test_reading.py and test_preprocess.py": (
        "images/samples images/choices"
    ),
    "only a browser shows it: tests/e2e, and ui/test_page.py for what needs none": (
        "ui/main ui/menu ui/components/pictures ui/explorer/atlases ui/explorer/menus "
        "ui/explorer/predictions ui/explorer/scene ui/sidebar/image_choice"
    ),
}
"""Modules without a test of their own name, under the reason why."""

OF_SEVERAL = {
    "lenses/contract/test_function_targets.py",  # of every lens that asks about a class
    "lenses/contract/test_later_calls.py",  # of every lens of gradients
    "ui/lessons/test_quick_hands.py",
    "ui/lessons/test_texts_follow.py",
    "atlas/test_atlas_of_tokens.py",
    "capturing/test_odd_networks.py",
    "capturing/test_odd_outputs.py",
    "capturing/test_random_networks.py",
    "capturing/test_timm_families.py",
    "capturing/test_timm_transformers.py",
    "explaining/attention/test_attention_of_networks.py",
    "explaining/network_map/test_maps_of_networks.py",
    "explorer/test_functions.py",
    "explorer/test_order.py",
    "language/test_terms.py",
    "lenses/test_edits_of_tokens.py",
    "capturing/test_volume_axes.py",
    "explorer/test_no_numbers.py",
    "explorer/test_whole_of_any_network.py",
    "lenses/test_every_lens.py",
    "lenses/test_grad_cam_of_tokens.py",
    "lenses/test_lenses_of_tokens.py",
    "lenses/test_answers.py",
    "lessons/test_every_lesson.py",
    "standalone/test_channel_numbers.py",  # of scripts, which have no module in Python
    "standalone/test_preprocessing_in_a_page.py",
    "lessons/test_every_network.py",
    "ui/lenses/test_every_control.py",
    "ui/test_threats.py",
}
"""Tests in a folder that are of more than one module."""


def test_every_module_has_its_mirrored_test() -> None:
    modules = {name for name in MODULES if Path(name).stem not in {"__init__", "__main__"}}
    without = {f"{name}.py" for names in SHOWN_ELSEWHERE.values() for name in names.split()}
    mirrors = {_mirror(name).as_posix() for name in modules}
    assert without - modules == set(), "no such module"
    assert {name for name in without if (TESTS / _mirror(name)).exists()} == set(), "it has one now"
    assert {name for name in modules - without if not (TESTS / _mirror(name)).exists()} == set()
    tests = {
        path.relative_to(TESTS).as_posix()
        for folder in PACKAGE.iterdir()
        if folder.is_dir()
        for path in (TESTS / folder.name).rglob("test_*.py")
    }
    assert tests - mirrors - OF_SEVERAL == set(), "their modules are gone, or have other names"


def _mirror(module: str) -> Path:
    return Path(module).parent / f"test_{Path(module).name}"


def test_tests_that_the_threat_model_names_are_there() -> None:
    """`FILE::NAME` by the end of the file's path; `…` is the file before, or the rest of a name."""
    text = (ROOT / "docs" / "threats.md").read_text("utf-8")
    code = {f"/{path.relative_to(TESTS).as_posix()}": path for path in TESTS.rglob("test_*.py")}
    missing, last = [], ""
    for file, name in re.findall(r"`([\w/.…]+)::(\w+)", text):
        last = last if file == "…" else file
        texts = [path.read_text("utf-8") for end, path in code.items() if end.endswith(f"/{last}")]
        if not any(re.search(rf"^(def )?{name}", text, re.MULTILINE) for text in texts):
            missing.append(f"{last}::{name}")
    assert missing == []


SOFTMAX_ELSEWHERE = {  # what is no probability of a class, or is written into a script
    "explaining/attribution/methods.py",  # the weights of channels
    "hooking/attention_calls.py",
    "lenses/ablate.py",
    "lenses/attention.py",
    "lenses/channels_that_matter.py",
    "lenses/prune_weights.py",
    "lenses/segmentation.py",
    "lenses/toaster.py",
}


def test_a_score_becomes_a_probability_in_one_place() -> None:
    """`Reading.values` knows what the scores are; a softmax elsewhere would not ask."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\.(log_)?softmax\(", path.read_text("utf-8"))
    }
    assert {name for name in found if not name.startswith("outputs/")} == SOFTMAX_ELSEWHERE
