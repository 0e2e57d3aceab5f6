"""Put the files that a written set-up reads into a folder: the image, and the weights."""

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import save_file

from hookviz.hooking.forward_pass import private_replica
from hookviz.lessons.part import LessonScene
from hookviz.lessons.script_scene import weights_of
from hookviz.models.bundled import BUNDLED


def files_of(scene: LessonScene) -> Callable[[Path], None]:
    """Return what puts the scene's image and weights into a folder, and holds no model in use."""
    image, name, weights = scene.image.pixels, Path(scene.image.name).name, weights_of(scene)
    shipped = BUNDLED[scene.model.name].weights_file if scene.model.name in BUNDLED else None
    model = scene.model

    def fill(folder: Path) -> None:
        with folder.joinpath(name).open("wb") as file:
            Image.fromarray(image).save(file, "PNG")  # pixel for pixel, whatever it is called
        if not weights:
            return
        to = folder / Path(weights).name
        if shipped is not None and shipped.name == weights:
            shutil.copyfile(shipped, to)
            return
        with private_replica(model) as network:
            state = network.state_dict()
            if to.suffix == ".safetensors":
                save_file({key: value.contiguous() for key, value in state.items()}, to)
            else:
                torch.save(state, to)

    return fill
