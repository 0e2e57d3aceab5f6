"""Choose how pictures are made: how large, from which seed, robust to what."""

from dataclasses import dataclass

from hookviz.deprecated import RenamedAttribute, renamed_keyword
from hookviz.errors import SettingError, one_of
from hookviz.language.saying import mark, say
from hookviz.synthesis.robustness import SLIGHT, Robustness

SPACES = (mark("Fourier"), "MACO")
PENALTIES = (mark("none"), mark("total variation"), "L2")
MOST_STEPS, MOST_PICTURES = 4096, 64
SIZES = 32, 512


@renamed_keyword("disturbance", "robustness")
@dataclass(frozen=True, slots=True)
class SynthesisMethod:
    """Settings that a picture depends on beside the model and its goal.

    Equal methods make equal pictures, bit for bit on one machine with as many threads, however
    often the work was stopped and continued.

    Attributes:
        size: side of the pictures in pixels; None for the model's own.
        seed: of the noise that is begun with, and of every step's transformations.
        space: ``"Fourier"``, or ``"MACO"``, which holds the spectrum to that of photographs.
        robustness: the transformations that a picture has to stand.
        penalty: ``"total variation"`` for smooth pictures, ``"L2"`` for grey ones.
        strength: what the penalty counts, where the goal counts in units of its layer's spread.
        diversity: how much pictures of one goal avoid each other, by their Gram matrices.
        rate: how far a step goes, times that of the space.
    """

    size: int | None = 128
    seed: int = 0
    space: str = mark("Fourier")
    robustness: Robustness = SLIGHT
    penalty: str = "none"
    strength: float = 1.0
    diversity: float = 0.0
    rate: float = 1.0

    disturbance = RenamedAttribute("robustness")

    def check(self) -> None:
        """Check that every setting means something.

        Raises:
            SettingError: one does not.
        """
        one_of(say("space"), self.space, SPACES)
        one_of(say("penalty"), self.penalty, PENALTIES)
        low, high = SIZES
        if self.size is not None and not low <= self.size <= high:
            raise SettingError(
                say(
                    "size={size}: pictures have {low} to {high} pixels a side.",
                    size=self.size,
                    low=low,
                    high=high,
                )
            )
        if not 0 <= self.seed < 2**31:
            raise SettingError(
                say(
                    "seed={seed} is not a whole number from 0 to {limit}.",
                    seed=self.seed,
                    limit=2**31 - 1,
                )
            )
        for name in ("strength", "diversity", "rate"):
            if not 0 <= getattr(self, name) <= 1000:
                raise SettingError(
                    say(
                        "{name}={value} is not a number from 0 to 1000.",
                        name=name,
                        value=getattr(self, name),
                    )
                )
