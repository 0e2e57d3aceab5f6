"""Write how pictures are optimized, for lenses whose pictures a network makes.

The parameters that the steps change are a spectrum of the pictures, or its phases alone.
"""

from collections.abc import Sequence

from hookviz.codegen.facts import LensFacts
from hookviz.codegen.lens_script import in_order
from hookviz.codegen.script_text import as_maps, quoted, source_of
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
from hookviz.synthesis.settings import SLIGHT, Robustness

STEPS_SAYS = "rounding grows with them: after many, pictures are alike and not the same"


def as_input(facts: LensFacts) -> str:
    """Write ``low``, ``high`` and ``as_input``: from pictures of 0…1 to what the network takes."""
    steps, channels = facts.preprocess, facts.shape[0]
    if steps is not None and steps.channels == channels:
        ends = _NORMALISED.format(mean=list(steps.mean), std=list(steps.std))
    elif steps is not None:
        ends = "low, high = torch.zeros(1), torch.ones(1)"
    elif facts.library_calls:
        calls = facts.library_calls
        ends = _NORMALISED.format(mean=calls.mean, std=calls.std)
    else:
        ends = _LOOKED_UP
    return f"model.requires_grad_(False)  # nothing of the network changes\n{ends}\n{_AS_INPUT}"


_NORMALISED = """\
mean, std = torch.tensor({mean}), torch.tensor({std})
low, high = (((end - mean) / std)[:, None, None] for end in (0, 1))  # black and white, (C, 1, 1)"""
_LOOKED_UP = """\
flat = (Image.new("RGB", (224, 224), level) for level in ("black", "white"))
low, high = (prepare(image).flatten(1).mean(1)[:, None, None] for image in flat)  # (C, 1, 1)"""
_AS_INPUT = '''

def as_input(pictures):
    """Pictures of 0…1 as the network takes them."""
    return low + pictures * (high - low)

'''


def output_of(facts: LensFacts, *, of: str) -> str:
    """Write ``output_of``, a pass.

    Args:
        facts: of the lens, with the layout of its layer.
        of: ``"scores"``; ``"LAYER"``, a constant of the script; or ``"layer"``, an argument.
    """
    if of == "scores":
        return _SCORES
    argument = ", layer" if of == "layer" else ""
    return _OUTPUT.format(argument=argument, layer=of, maps=as_maps(facts.layout))


_SCORES = '''

def output_of(inputs):
    """The classes' scores for each input, before the softmax, (N, classes)."""
    return model(inputs)

'''
_OUTPUT = '''

def output_of(inputs{argument}):
    """What the layer's first call puts out for each input, (N, C, …)."""
    outputs = []

    def hold(module, inputs, output):
        outputs.append(output)
        return output.clone()  # an in-place ReLU that follows would write over the original

    handle = model.get_submodule({layer}).register_forward_hook(hold)
    model(inputs)
    handle.remove()
    return outputs[0]{maps}

'''


def optimize(
    rate: str,
    *,
    steady: bool,
    before: str = "",
    loss: Sequence[str],
    robustness: Robustness = SLIGHT,
) -> str:
    """Write the steps, which fill ``history`` and leave ``pictures`` and ``values`` as they end.

    Args:
        rate: how far a step of Adam goes.
        steady: whether the pictures are `moved` before each pass; the script has ``SEED`` then.
        before: lines of the loop that the loss takes.
        robustness: how far they are moved.
        loss: expressions whose sum falls; ``values``, ``output`` and ``pictures`` are there.
    """
    first, *more = loss
    return _CLIMB.format(
        rate=rate,
        step="step" if steady or before else "_",
        draws=_DRAWS if steady else "",
        seen=_SEEN.format(robustness) if steady else "pictures",
        before=before,
        loss="\n".join([f"    loss = {first}", *(f"    loss = loss + {cost}" for cost in more)]),
    )


_CLIMB = """
optimizer = torch.optim.Adam([parameters], lr={rate}, eps=1e-16)  # gradients can be tiny
history = []
for {step} in range(STEPS):
    pictures = pictures_of(parameters)
{draws}    output = output_of(as_input({seen}))
    values = values_of(output)
{before}{loss}
    history.append(values.tolist())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():  # the pictures as they are now, and not moved
    pictures = pictures_of(parameters)
    values = values_of(output_of(as_input(pictures)))"""

_DRAWS = """\
    draws = torch.Generator().manual_seed(SEED * 1_000_003 + step)  # anew for each step
"""
_SEEN = "moved(pictures, draws, {0.shift}, {0.scale}, {0.degrees})"


def levels(facts: LensFacts, pictures: str = "pictures") -> str:
    """Write ``shown``, RGB of 0 to 255, of an expression for pictures."""
    colour = ".expand(-1, 3, -1, -1)" if facts.shape[0] == 1 else ""
    return (
        f"shown = (255 * {pictures}){colour}.round().to(torch.uint8).movedim(1, -1).numpy()  "
        "# (N, H, W, 3)"
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
