import csv
import io
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz import TrainingFinding, TrainingLog, TrainingRow


def log_of(**lines: list[float]) -> TrainingLog:
    """A log of gradient norms by layer."""
    steps = range(max(map(len, lines.values())))
    return TrainingLog(
        [
            TrainingRow(step * 10, layer, gradient_norm=values[step])
            for step in steps
            for layer, values in lines.items()
        ]
    )


def steady(count: int) -> list[float]:
    return [1 + 0.1 * math.sin(step) for step in range(count)]


def test_the_table_is_what_pandas_and_files_take(tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415

    log = TrainingLog([TrainingRow(0, "a", 1.5, 2.0), TrainingRow(10, "b", dead=0.25)])
    frame = pd.DataFrame(log.table())
    assert list(frame["step"]) == [0, 10]
    assert frame["gradient_norm"].isna().tolist() == [False, True]
    log.save(tmp_path / "log.parquet")
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "log.parquet"), frame, check_dtype=False
    )
    log.save(tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["dead"] for row in rows] == ["", "0.25"]
    assert rows[0]["gradient_norm"] == "1.5"
    with pytest.raises(hookviz.SettingError, match=r"Choose from \.parquet, \.csv"):
        log.save(tmp_path / "log.xlsx")


def test_without_pyarrow_a_parquet_file_says_so(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["pyarrow"] = None
import hookviz
try:
    hookviz.TrainingLog().save({str(tmp_path / "log.parquet")!r})
except hookviz.SettingError as error:
    assert "needs pyarrow" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_chart_shows_up_to_five_layers_and_a_notebook_the_gradients() -> None:
    log = log_of(**{f"layer{number}": steady(4) for number in range(9)})
    pixels = np.asarray(Image.open(io.BytesIO(log.chart())))
    assert pixels.shape[1] > 1000
    assert pixels[..., 3].any()
    assert log.chart(layers=["layer1"]) != log.chart(layers=["layer1", "layer2"])
    six = [f"layer{number}" for number in range(6)]
    wrong: list[tuple[str, list[str] | None, str]] = [
        ("gradients", None, "gradient_norm"),
        ("gradient_norm", ["layer11"], "'layer1'"),
        ("gradient_norm", six, "up to five"),
        ("dead", None, "no dead yet"),
    ]
    for measure, layers, said in wrong:
        with pytest.raises(hookviz.HookVizError, match=said):
            log.chart(measure, layers)
    log = log_of(a=steady(4), b=steady(4)[::-1])
    assert log._repr_png_() == log.chart("gradient_norm", ["a", "b"])
    assert TrainingLog([TrainingRow(0, "relu", dead=0.5)])._repr_png_() is None


@pytest.mark.parametrize(
    ("values", "kind", "step", "usual"),
    [
        ([*steady(20), 9.0, *steady(3)], "jump", 200, 1.0),
        ([*steady(20), 0.1, *steady(3)], "jump", 200, 1.0),
        ([*steady(3), math.nan, *steady(3)], "not finite", 30, None),
        ([*steady(3), math.inf], "not finite", 30, None),
        ([*steady(3), 1e-5, 1e-6], "vanishing", 30, 1.0),
        ([*steady(3), 5e3], "exploding", 30, 1.0),
    ],
)
def test_what_stands_out_is_named_with_its_step(
    values: list[float], kind: str, step: int, usual: float | None
) -> None:
    findings = log_of(first=values, last=steady(len(values))).findings()
    about = [finding for finding in findings if finding.layer == "first" and finding.kind == kind]
    assert len(about) == 1
    assert about[0].step == step
    if usual is not None:
        assert about[0].usual == pytest.approx(usual, rel=0.15)
    assert f"first, step {step}: {kind}, norm of the gradient" in str(about[0])


def test_the_z_score_is_that_of_the_formula_and_a_steady_run_has_none() -> None:
    """By NumPy: just beyond the limit, and just within."""
    values = [1.5 ** math.sin(step) for step in range(20)]
    logs = np.log10(values)
    spread = float(np.median(np.abs(logs - np.median(logs))))
    for z, count in ((6.05, 1), (5.95, 0)):
        value = 10 ** (float(np.median(logs)) + z * spread / 0.6745)
        assert value > 3 * 10 ** float(np.median(logs))
        findings = log_of(first=[*values, value], other=[value] * 21).findings()
        assert sum(finding.kind == "jump" for finding in findings) == count
    assert log_of(first=steady(60), last=steady(60)).findings() == ()


def test_every_number_goes_to_a_writer_and_a_finding_is_a_sentence() -> None:
    class Writer:
        def __init__(self) -> None:
            self.scalars: list[tuple[Any, ...]] = []

        def add_scalar(self, tag: str, value: float, step: int) -> None:
            self.scalars.append((tag, value, step))

    writer = Writer()
    TrainingLog([TrainingRow(3, "a", 1.5, dead=0.0)]).write_to(writer)
    assert writer.scalars == [("a/gradient_norm", 1.5, 3), ("a/dead", 0.0, 3)]
    finding = TrainingFinding("vanishing", 120, "conv1", "gradient_norm", 3.21e-9, 0.4)
    assert str(finding) == (
        "conv1, step 120: vanishing, norm of the gradient 3.21×10⁻⁹; the largest of that step is "
        "0.400."
    )
