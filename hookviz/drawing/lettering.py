"""Write lines of text onto a picture with Pillow, in the font of the language that is spoken."""

from collections.abc import Iterator, Sequence

from PIL import ImageDraw, ImageFont

from hookviz.drawing.fonts import font_file

Font = ImageFont.FreeTypeFont

_LINE = 1.35  # of a letter's height


def letters(pixels: int) -> Font:
    """Return a font whose letters are so many pixels high."""
    return ImageFont.truetype(str(font_file()), pixels)


def line_height(lines: int, font: Font) -> int:
    """Return how many pixels down so many lines take."""
    return round(lines * font.size * _LINE)


def write(
    pen: ImageDraw.ImageDraw, at: tuple[int, int], lines: Sequence[str], font: Font, ink: str
) -> None:
    """Write lines one below the other; `at` is the left upper corner in pixels, (x, y)."""
    for place, line in enumerate(lines):
        pen.text((at[0], at[1] + line_height(place, font)), line, ink, font)


def broken(text: str, font: Font, width: int) -> Iterator[str]:
    """Break text into lines of `width` pixels: between words, and between Chinese characters."""
    line = ""
    for part in _parts(text):
        if line and font.getlength((line + part).rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
    yield line.rstrip()


def _parts(text: str) -> Iterator[str]:
    word = ""
    for letter in text:
        word += letter
        if letter == " " or ord(letter) > 0x2E80:  # from here on are Chinese characters and signs
            yield word
            word = ""
    yield word
