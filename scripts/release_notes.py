"""Print what CHANGELOG.md says of a version, for the release that its tag makes.

python -m scripts.release_notes v1.0.0
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Print the notes of the tag that is the one argument."""
    version = sys.argv[1].removeprefix("v")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    if project["version"] != version:
        sys.exit(f"The tag says {version}, and pyproject.toml {project['version']}.")
    print(notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version))


def notes(changelog: str, version: str) -> str:
    """Return what stands under a version's heading.

    Raises:
        SystemExit: it has none, or nothing stands there.
    """
    heading = rf"^## \[?{re.escape(version)}\]?(?: .*)?$"
    parts = re.split(heading, changelog, maxsplit=1, flags=re.MULTILINE)
    said = re.split(r"^## ", parts[-1], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if len(parts) != 2 or not said:
        sys.exit(f"CHANGELOG.md says nothing of {version}.")
    return said


if __name__ == "__main__":
    main()
