"""Say how large an image's parts are, and end with status 1 where all of it is too large.

It runs inside of the image, which has none of the scripts, with nothing but Python itself::

    docker run --rm -i hookviz python - --most 1.7 < scripts/image_parts.py
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

LISTED = 12
"""The largest packages, by name; the others are one line."""


def bytes_of(folder: Path) -> int:
    """Return the bytes of all files below a folder on its own file system, each counted once."""
    total, seen = 0, set[int]()
    device = folder.lstat().st_dev
    for place, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if (Path(place) / each).lstat().st_dev == device]
        for file in files:
            facts = (Path(place) / file).lstat()
            if facts.st_ino not in seen:  # a hard link takes nothing
                seen.add(facts.st_ino)
                total += facts.st_size
    return total


def parts_of(packages: Path, code: Path, whole: Path) -> Counter[str]:
    """Return the bytes of each package, of the code and of what else there is."""
    parts: Counter[str] = Counter()
    for each in packages.iterdir():
        name = each.name.partition("-")[0].removesuffix(".libs").removesuffix(".py").lower()
        parts[name] += bytes_of(each) if each.is_dir() else each.lstat().st_size
    parts["hookviz"] += bytes_of(code)
    parts["system and Python"] = max(0, bytes_of(whole) - parts.total())
    return parts


def main() -> None:
    """Print the parts, the largest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, default=float("inf"), metavar="GB")
    parser.add_argument("--code", type=Path, default=Path("/app"))
    parser.add_argument("--whole", type=Path, default=Path("/"))
    given = parser.parse_args()
    packages = next(Path(each) for each in sys.path if each.endswith("site-packages"))
    parts = parts_of(packages, given.code, given.whole)
    largest = parts.most_common(LISTED)
    others = parts.total() - sum(size for _, size in largest)
    for name, size in (*largest, ("others", others), ("all", parts.total())):
        print(f"{size / 1e6:8.1f} MB  {name}")
    if parts.total() > given.most * 1e9:
        sys.exit(f"The image takes {parts.total() / 1e9:.2f} GB, more than {given.most} GB.")


if __name__ == "__main__":
    main()
