"""Count for how many classes ShapesNet, and a second seed of it, see the class in its picture."""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

import hookviz
from hookviz.models.shapesnet import ShapesNet
from hookviz.synthesis.maximizing import begin

SECOND = Path(__file__).parent.parent / "tests" / "synthesis" / "second_shapesnet.safetensors"


def judged(space: str, side: int = 96, steps: int = 100) -> tuple[int, int]:
    """Count the classes whose picture ShapesNet takes for them, and those the second seed does."""
    model = hookviz.load_model("shapesnet")
    judge = ShapesNet().eval()
    judge.load_state_dict({name: each.float() for name, each in load_file(SECOND).items()})
    assert isinstance(model.preprocess, hookviz.Preprocess)
    mean, std = (
        torch.tensor(numbers).view(1, 3, 1, 1)
        for numbers in (model.preprocess.mean, model.preprocess.std)
    )
    classes = torch.arange(len(model.categories))
    optimization = begin(
        model,
        [hookviz.Objective.of_class(target) for target in classes.tolist()],
        hookviz.MaximizationConfig(size=side, space=space),
    )
    optimization.run(steps)
    inputs = (optimization.tensor() - mean) / std
    with torch.no_grad():
        own, theirs = model.network(inputs).argmax(1), judge(inputs).argmax(1)
    return int((own == classes).sum()), int((theirs == classes).sum())


if __name__ == "__main__":
    for space in ("Fourier", "MACO"):
        own, theirs = judged(space)
        sys.stdout.write(f"{space}: {own} by itself, {theirs} by the second network\n")
