// Where a frame's parts begin among the bytes of a training, and the points of its curve.

import assert from "node:assert/strict";
import { test } from "node:test";
import { partsOf, pathOf } from "../../hookviz/ui/components/training.js";

test("a frame's parts lie one behind the other: kernels in colour, first maps, deeper ones", () => {
  const data = {
    kernels: [2, 3],
    firstSide: 4,
    deeper: [
      ["conv2", 0, 2],
      ["conv3", 5, 1],
    ],
  };
  assert.deepEqual(partsOf(data), {
    parts: [
      [0, 54],
      [54, 86],
      [86, 90],
      [90, 91],
    ],
    size: 91,
  });
});

test("a curve goes from left to right, its highest value near the top, with gaps where there is none", () => {
  assert.equal(pathOf([], 100, 2), "");
  assert.equal(
    pathOf(
      [
        [0, 2],
        [50, null],
        [100, 1],
      ],
      100,
      2,
    ),
    "M0.00 2.00L100.00 21.00",
  );
  assert.equal(pathOf([[0, 9]], 100, 2), "M0.00 2.00"); // what is higher stays in the box
});
