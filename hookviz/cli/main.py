"""Start the ``hookviz`` command, whose subcommands are imported when one is called.

``hookviz --help`` is there at once, since it imports none of them and so no torch either.
"""

import io
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from hookviz import __version__
from hookviz.cli.terminal import MISTAKE, in_words, print_error
from hookviz.errors import HookVizError, UnknownNameError

COMMANDS = {
    "run": "Start the app, by default at http://localhost:8501.",
    "models": "List the models: size, accuracy, and whether the weights are on this machine.",
    "layers": "List a model's layers in order of execution, with their shapes.",
    "grid": "Draw every channel of a layer for each IMAGE: a file, a folder or a pattern.",
    "capture": "Record the activations of each IMAGE: a file, a folder or a pattern.",
    "page": "Save the explorer of an IMAGE as one HTML file, which opens without a server.",
    "live": "Save a network as one HTML file that runs it in a browser, on any image.",
    "map": "Draw the network for a paper: each layer with its strongest channels on an IMAGE.",
    "lens": "Look at an IMAGE through a lens; without a name, list the lenses.",
    "compare": "Compare what a layer makes of two images, or two models of one.",
    "similarity": "Tell how alike the layers of two models are over many images.",
    "features": "Make a vector of each IMAGE, and say which are alike.",
    "atlas": "Find the images that excite each channel most, among those of a folder.",
    "similar": "Name the images of an INDEX that are most like an IMAGE to the network.",
    "classify": "Tell how well a layer's features tell the class folders of a FOLDER apart.",
    "fetch": "Download weights ahead of time, or check those that are there.",
    "doctor": "Say what works on this machine, and what to do about what doesn't.",
}
"""What each subcommand does; the help of its function begins with the same sentence."""

_MODULES = {
    **dict.fromkeys(("layers", "fetch"), "models"),
    **dict.fromkeys(("grid", "live", "map", "page"), "pictures"),
    **dict.fromkeys(("similar", "classify"), "features"),
    "similarity": "compare",
}
"""The module of each subcommand that is not in the one of its own name."""

_STOPPED = 130  # as shells have it for Ctrl-C


def find_command(name: str) -> click.Command:
    """Import one of `COMMANDS`: the function of that name in its module."""
    module = import_module(f"hookviz.cli.{_MODULES.get(name, name)}")
    command: click.Command = getattr(module, name)
    return command


class _Commands(click.Group):
    """Click group of `COMMANDS`, in which a person's mistakes become one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        return find_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise UnknownNameError("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command line and exit: 0, or 2 with one line on standard error."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # "→" in a terminal that knows no such sign
        options["standalone_mode"] = False
        try:
            code = super().main(*args, **options)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.Abort:
            print_error("stopped.")
            code = _STOPPED
        except click.UsageError as error:
            hint = f" See {error.ctx.command_path} --help." if error.ctx else ""
            print_error(f"{error.format_message()}{hint}")
            code = MISTAKE
        except click.ClickException as error:
            print_error(error.format_message())
            code = MISTAKE
        except (HookVizError, OSError) as error:
            print_error(in_words(error))
            code = MISTAKE
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=_Commands)
@click.version_option(__version__, prog_name="hookviz")
def main() -> None:
    """See what a convolutional network computes."""
