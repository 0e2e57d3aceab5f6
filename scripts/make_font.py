"""Make the font for Chinese print: Droid Sans Fallback, with DejaVu Sans for Latin and signs.

``python -m scripts.make_font DroidSansFallbackFull.ttf`` writes ``assets/fonts``; Debian has the
file in fonts-droid-fallback, and DejaVu Sans comes with matplotlib. A test fails as soon as a
catalog has a character that the font lacks.
"""

import re
import sys
import tempfile
from pathlib import Path

from fontTools import merge, subset
from fontTools.ttLib import TTFont, scaleUpem

from hookviz.drawing.figures import CHINESE, font_file
from hookviz.language.catalogs import CLASS_NAMES, files

_SIGNS = map(
    chr,
    [
        *range(0x20, 0x7F),
        *range(0x3000, 0x3020),
        *range(0xFF01, 0xFF5F),
        0x2610,
        0x2611,
        0x2612,
        0x2713,
    ],
)
_GB2312 = (bytes((row, cell)) for row in range(0xA1, 0xF8) for cell in range(0xA1, 0xFF))
_DROPPED = ["GDEF", "GPOS", "GSUB", "kern", "vhea", "vmtx", "FFTM", "DSIG", "MATH", "JSTF", "BASE"]


def characters() -> str:
    """Return what the catalogs say, and GB 2312, in which a teacher writes lessons."""
    every = (*files().values(), *files(CLASS_NAMES).values())
    said = "".join(file.read_text("utf-8") for file in every)
    common = "".join(pair.decode("gb2312", "ignore") for pair in _GB2312)
    return "".join(sorted({*_SIGNS, *common, *re.sub(r"\s", "", said)}))


def _part(source: str, wanted: set[int], target: Path) -> set[int]:
    """Subset a font to some characters of another; return it and which of them it has."""
    options = subset.Options(layout_features=[], hinting=False, drop_tables=_DROPPED)
    font = subset.load_font(source, options)
    has = wanted & set(font.getBestCmap())
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=has)
    cutter.subset(font)
    scaleUpem.scale_upem(font, 2048)
    subset.save_font(font, str(target), options)
    return has


def main(fallback: str) -> None:
    """Write the font."""
    wanted = set(map(ord, characters()))
    with tempfile.TemporaryDirectory() as folder:
        latin, han = Path(folder, "latin.ttf"), Path(folder, "han.ttf")
        known = _part(str(font_file("en")), wanted, latin)
        known |= _part(fallback, wanted - known, han)
        font: TTFont = merge.Merger().merge([str(latin), str(han)])
    for record in font["name"].names:
        if record.nameID in (1, 4, 6, 16):
            record.string = "HookVizSans" if record.nameID == 6 else "HookViz Sans"
    font["head"].modified = font["head"].created  # the same bytes for the same characters
    CHINESE.parent.mkdir(exist_ok=True)
    font.save(CHINESE)
    print(f"{CHINESE.name}: {CHINESE.stat().st_size:,} bytes, {len(known):,} characters")
    print("without", "".join(map(chr, sorted(wanted - known))))


if __name__ == "__main__":
    main(sys.argv[1])
