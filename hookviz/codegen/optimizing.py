"""Write the steps by which pictures are optimized, for lenses whose pictures a network makes."""

from collections.abc import Sequence

from hookviz.codegen.lens_facts import LensFacts
from hookviz.codegen.wording import as_maps
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
