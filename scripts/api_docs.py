"""Build the API reference from the docstrings of HookViz's public names into `out/docs`.

A warning is an error here: a name that does not resolve, or an annotation that can't be read,
would otherwise be missing from the page without anybody noticing.
"""

import argparse
import warnings
from pathlib import Path

import pdoc
import pdoc.render

import hookviz

OUT = Path(__file__).parent.parent / "out" / "docs"


def main() -> None:
    """Write the reference to the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=OUT)
    out: Path = parser.parse_args().out
    build(out)
    print(f"{out / 'hookviz.html'}: {len(hookviz.__all__)} names")


def build(out: Path) -> None:
    """Write the reference to `out`.

    Raises:
        Warning: whatever pdoc warns of.
    """
    for name in hookviz.__all__:
        getattr(hookviz, name)  # pdoc takes a name for a module where it has not been imported yet
    pdoc.render.configure(
        docformat="google", show_source=False, footer_text=f"HookViz {hookviz.__version__}"
    )
    with warnings.catch_warnings(action="error"):
        # the packages behind the public names are for whoever changes HookViz, and not in it
        pdoc.pdoc("hookviz", "!hookviz\\..+", output_directory=out)


if __name__ == "__main__":
    main()
