import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from hookviz import __version__
from hookviz.cli.main import COMMANDS, find_command, main
from tests.cli.command import ROOT, invoke, mistake, output_of


def test_version_and_help() -> None:
    assert output_of("--version") == f"hookviz, version {__version__}\n"
    listed = " ".join(output_of("--help").split())  # lines are broken by the terminal's width
    assert all(f" {name} {text}" in listed for name, text in COMMANDS.items())
    assert "Commands:" in invoke().output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_begins_as_the_list_says(name: str) -> None:
    command = find_command(name)
    assert (command.help or "").startswith(f"{COMMANDS[name]}\n\n")
    shown = output_of(name, "--help")
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert all((each.opts[-1] in shown) != each.hidden for each in options)


def test_every_command_in_the_code_is_listed() -> None:
    commands = {
        name
        for path in (ROOT / "hookviz" / "cli").glob("*.py")
        for name in re.findall(
            r"^@click\.command\((?:.|\n)*?^def (\w+)", path.read_text("utf-8"), re.M
        )
    }
    assert commands == set(COMMANDS)


@pytest.mark.parametrize("arguments", [["--help"], ["grod"]])
def test_help_is_there_without_loading_torch(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from hookviz.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('LOADED', *{'torch', 'streamlit', 'numpy'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.stdout.splitlines()[-1] == "LOADED", run.stderr


def test_what_a_person_got_wrong_is_one_line() -> None:
    assert "no command called 'grod'. Did you mean 'grid'?" in mistake("grod")
    assert "--jsn" in mistake("models", "--jsn")
    assert "Did you mean 'resnet18'" in mistake("layers", "resnet81")
    assert "See" in mistake("layers")
    assert "--help" in mistake("grid", "x.png")


def test_a_bug_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "broken", "A command whose module is not there.")
    with pytest.raises(ModuleNotFoundError):
        invoke("broken")


def test_a_terminal_without_the_signs_gets_others() -> None:
    result = CliRunner(charset="latin-1").invoke(main, ["layers", "shapesnet"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "128×128 ? 32×64×64" in result.stdout  # latin-1 has × and no arrow
