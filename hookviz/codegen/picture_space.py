"""Write how pictures are made of parameters that are optimized: a spectrum, or phases alone."""

from hookviz.codegen.function_source import source_of
from hookviz.codegen.lens_facts import LensFacts
from hookviz.codegen.lens_parts import in_order
from hookviz.codegen.wording import quoted
from hookviz.images.samples import samples
from hookviz.synthesis.picture_space import (
    averaged_over_angle,
    colour_factor,
    frequency_scale,
    from_phases,
    from_spectrum,
    to_pictures,
    to_plain,
)


def fourier() -> str:
    """Write ``pictures_of``, from spectra to pictures, with ``SCALE`` and ``COLOURS``."""
    functions = source_of(frequency_scale, from_spectrum, to_pictures)
    return in_order(_colours(), functions, _SCALE, _PICTURES_OF.format(plain=_FROM_SPECTRUM))


def _colours() -> str:
    """Write the colours of photographs as a constant, with all digits that float32 has."""
    rows: list[list[float]] = colour_factor().tolist()
    lines = "\n".join(f"        [{', '.join(f'{number:.9g}' for number in row)}]," for row in rows)
    return f"{_COLOURS_SAY}\nCOLOURS = torch.tensor(\n    [\n{lines}\n    ]\n)"


_COLOURS_SAY = """\
# How red, green and blue go together: COLOURS @ COLOURS.T is, to a factor, their covariance in some
# photographs. Of independent noise it makes their colours (Olah et al., 2017)."""
_SCALE = "SCALE = frequency_scale(SIZE)"
_FROM_SPECTRUM = "from_spectrum(parameters, SCALE, SIZE)"
_FROM_PHASES = "from_phases(parameters, MAGNITUDE, SIZE)"
_PICTURES_OF = '''

def pictures_of(parameters):
    """The pictures of these parameters, (N, C, H, W) in 0…1."""
    return to_pictures({plain}, COLOURS)

'''


def noise(facts: LensFacts) -> str:
    """Write ``parameters``, nearly grey spectra by ``SEEDS``, ``(N, C, H, W // 2 + 1, 2)``."""
    return _NOISE.format(channels=facts.shape[0])


_NOISE = """\
noise = [
    torch.randn(({channels}, *SCALE.shape, 2), generator=torch.Generator().manual_seed(seed))
    for seed in SEEDS
]
parameters = (0.01 * torch.stack(noise)).requires_grad_()  # real and imaginary parts"""


def maco(facts: LensFacts) -> str:
    """Write ``pictures_of``, from phases to pictures, and ``parameters``, phases by ``SEEDS``."""
    photographs = [sample.path.name for sample in samples() if sample.kind == "photo"]
    return in_order(
        _colours(),
        source_of(to_plain, averaged_over_angle, to_pictures, from_phases),
        _MAGNITUDE.format(
            files="\n".join(f"    {quoted(name)}," for name in photographs),
            first=":1, " if facts.shape[0] == 1 else "",
        ),
        _PICTURES_OF.format(plain=_FROM_PHASES),
        _PHASES,
    )


_MAGNITUDE = '''\
# MACO: the spectrum's magnitude is that of photographs, phases are optimised (Fel et al., 2023).
# These are in HookViz's folder assets/samples; with others there are other pictures.
PHOTOGRAPHS = (
{files}
)
missing = [file for file in PHOTOGRAPHS if not Path(file).exists()]
if missing:
    raise SystemExit(f"Put {{missing}} where this runs, or other photographs into PHOTOGRAPHS.")


def plain_of(file):
    """A photograph without bounds and in independent colours, (3, H, W)."""
    image = Image.open(file)
    image.draft("RGB", (256, 256))
    square = ImageOps.fit(image.convert("RGB"), (256, 256)).resize(SIZE[::-1])
    levels = torch.tensor(np.array(square)).movedim(-1, 0) / 255
    return to_plain(levels, COLOURS)


spectra = torch.fft.fft2(torch.stack([plain_of(file) for file in PHOTOGRAPHS]), norm="ortho")
MAGNITUDE = averaged_over_angle(spectra.abs().mean(0))[{first}..., : SIZE[1] // 2 + 1]'''
_PHASES = """\
noise = [
    torch.rand(MAGNITUDE.shape, generator=torch.Generator().manual_seed(seed)) for seed in SEEDS
]
parameters = (2 * math.pi * torch.stack(noise)).requires_grad_()"""
