"""Lines of code that make pictures of parameters which climb: a spectrum, or phases alone."""

from hookviz.codegen.lens_facts import LensFacts
from hookviz.codegen.wording import quoted
from hookviz.images.samples import samples
from hookviz.synthesis.photographs import colour_factor


def fourier(facts: LensFacts) -> str:
    """Makes ``pictures_of``, from spectra to pictures, and what it takes."""
    grey = facts.shape[0] == 1
    code = _FOURIER.format(returns=_GREY if grey else _COLOUR)
    return code if grey else f"{_colours()}\n{code}"


def _colours() -> str:
    """The colours of photographs as a constant, with all digits that float32 has."""
    rows = "\n".join(
        f"        [{', '.join(f'{number:.9g}' for number in row)}]," for row in _factor()
    )
    return f"{_COLOURS_SAY}\nCOLOURS = torch.tensor(\n    [\n{rows}\n    ]\n)"


def _factor() -> list[list[float]]:
    rows: list[list[float]] = colour_factor().tolist()
    return rows


_COLOURS_SAY = """\
# How red, green and blue go together: COLOURS @ COLOURS.T is, to a factor, their covariance in some
# photographs. Of independent noise it makes their colours (Olah et al., 2017)."""
_COLOUR = 'torch.einsum("cd,ndhw->nchw", COLOURS, plain).sigmoid()'
_GREY = "plain.sigmoid()"
_FOURIER = '''\
# How much each frequency of a picture counts: low ones most, as in photographs.
rows, columns = torch.fft.fftfreq(SIZE[0])[:, None], torch.fft.rfftfreq(SIZE[1])
SCALE = 1 / (rows**2 + columns**2).sqrt().clamp(min=1 / max(SIZE))


def pictures_of(parameters):
    """The pictures of these spectra, (N, C, H, W) in 0…1 (Olah et al., 2017)."""
    spectrum = torch.view_as_complex(parameters) * SCALE
    plain = torch.fft.irfft2(spectrum, s=SIZE, norm="ortho") / 4
    return {returns}

'''


def noise(facts: LensFacts) -> str:
    """Makes ``parameters``, nearly grey spectra by ``SEEDS``, ``(N, C, H, W // 2 + 1, 2)``."""
    return _NOISE.format(channels=facts.shape[0])


_NOISE = """\
noise = [
    torch.randn(({channels}, *SCALE.shape, 2), generator=torch.Generator().manual_seed(seed))
    for seed in SEEDS
]
parameters = (0.01 * torch.stack(noise)).requires_grad_()  # real and imaginary parts"""


def maco(facts: LensFacts) -> str:
    """Makes ``pictures_of``, from phases to pictures, and ``parameters``, phases by ``SEEDS``."""
    grey = facts.shape[0] == 1
    files = "\n".join(
        f"    {quoted(each.path.name)}," for each in samples() if each.kind == "photo"
    )
    photographs = _PHOTOGRAPHS.format(files=files, first="[:1]" if grey else "")
    phases = _PHASES.format(returns=_GREY if grey else _COLOUR)
    return f"{_colours()}\n{photographs}\n{phases}"


_PHOTOGRAPHS = '''\
# MACO: the spectrum's magnitude is that of photographs, and phases alone climb (Fel et al., 2023).
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
    return torch.einsum("dc,chw->dhw", COLOURS.inverse(), levels.clamp(0.02, 0.98).logit())


spectra = torch.fft.rfft2(torch.stack([plain_of(file) for file in PHOTOGRAPHS]), norm="ortho")
MAGNITUDE = spectra.abs().mean(0){first}'''
_PHASES = '''

def pictures_of(parameters):
    """The pictures of these phases, (N, C, H, W) in 0…1."""
    spectrum = torch.polar(MAGNITUDE.expand_as(parameters), parameters)
    plain = torch.fft.irfft2(spectrum, s=SIZE, norm="ortho")
    return {returns}


noise = [
    torch.rand(MAGNITUDE.shape, generator=torch.Generator().manual_seed(seed)) for seed in SEEDS
]
parameters = (2 * math.pi * torch.stack(noise)).requires_grad_()'''
