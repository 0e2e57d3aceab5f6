"""What all tests share: small fixtures, a server, and the order in which tests are run.

It imports no torch: a package that needs none is collected in a moment.
"""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from scripts.browsing import NO_CHROMIUM, chromium
from scripts.servers import Server, free_port, serve

if TYPE_CHECKING:
    from torch import Tensor

    from hookviz.types import Model

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has a core to itself: more threads would wait for each other. The servers and
    # programs that it starts follow, so that their numbers are the same to the last bit.
    os.environ["OMP_NUM_THREADS"] = "1"

settings.register_profile("tests", deadline=None)  # how long an example takes is no fault of it
settings.load_profile("tests")

pytest_plugins = ["tests.running_order"]

OWN_LESSON = """---
title: My own <b>lesson</b>
model: ShapesNet
sample: star
---
# Ours :red[x]

`<script>document.title = "bad"</script>` $x^2$ :material/home: [out](https://example.org)

```html
<img src=x onerror="document.title = 'bad'">
```

```live pixels
```

{nothing} is no fact.

# And on

Text {{alone}}.
"""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say before the tests begin that those in a browser are left out, and how to get one."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and chromium() is None:
        terminal.write_line(f"{NO_CHROMIUM} The tests that need none are run.")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected: nothing of it goes, and each look is long.

    Nor look at it again afterwards: a gigabyte of modules and tests stays to the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup() -> None:
    """Forget what was compiled: a function's programs are counted for all networks together.

    From the ninth on a module's `forward` runs as it is written, with its hooks.
    """
    if "torch._dynamo" in sys.modules:
        sys.modules["torch"].compiler.reset()


@pytest.fixture
def tiny() -> "Model":
    from tests.networks import Tiny, as_model, seeded  # noqa: PLC0415

    return as_model(seeded(Tiny))


@pytest.fixture
def noise() -> "Tensor":
    from tests.networks import random_input  # noqa: PLC0415

    return random_input(0)


@pytest.fixture(scope="session")
def of_catalog(request: pytest.FixtureRequest) -> "Model":
    """Each network of the catalog in turn, see `tests.every_network`."""
    import hookviz  # noqa: PLC0415

    name, weights = request.param
    return hookviz.load_model(name, weights)


@pytest.fixture(scope="session")
def lessons_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lessons of a teacher's own, which `server` shows beside ours."""
    return tmp_path_factory.mktemp("lessons")


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a server that has no weights and can fetch none."""
    return {
        "TORCH_HOME": str(tmp_path_factory.mktemp("torch")),
        "HOOKVIZ_WEIGHTS_URL": f"http://127.0.0.1:{free_port()}",
    }


@pytest.fixture(scope="session")
def metrics_port() -> int:
    """Where `server` tells its metrics."""
    return free_port()


@pytest.fixture(scope="session")
def server(offline: dict[str, str], lessons_folder: Path, metrics_port: int) -> Iterator[Server]:
    """The app, one for all tests of a worker that ask for no other: it takes seconds to start."""
    (lessons_folder / "01-own.md").write_text(OWN_LESSON, "utf-8")
    own = {
        "HOOKVIZ_LESSONS": str(lessons_folder),
        "HOOKVIZ_METRICS_PORT": str(metrics_port),
        "HOOKVIZ_CLASSES": "200",  # all teachers come from one address, which has half of them
    }
    with serve({**offline, **own}) as address:
        yield address
