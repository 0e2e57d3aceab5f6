"""Draw a link as a QR code."""

import segno


def qr_code(link: str) -> str:
    """Return a QR code as a URL of an SVG picture, black on white in any theme, with a margin."""
    code = segno.make(link, error="m", micro=False)
    return code.svg_data_uri(scale=8, border=4, dark="#000", light="#fff")
