// Where a frame's parts begin among the bytes of a training, and the points of its curve.

import assert from "node:assert/strict";
import { test } from "node:test";
import { partsOf, pathOf, standOf } from "../../hookviz/ui/components/training.js";

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

test("an answer to what was asked before does not pull a person back", () => {
  const data = (at, count = 41) => ({ name: "slow 1", at, frames: Array(count) });
  const scrubbed = { name: "slow 1", at: 1, moved: true, timer: 0 };
  assert.deepEqual(standOf(scrubbed, data(40)), { at: 1, moved: true, isPlaying: false }); // asked before
  assert.deepEqual(standOf(scrubbed, data(1)), { at: 1, moved: false, isPlaying: false }); // the answer
  assert.deepEqual(standOf({ ...scrubbed, moved: false }, data(7)), { at: 7, moved: false, isPlaying: false });
  assert.deepEqual(standOf({ ...scrubbed, name: "fast 1" }, data(40)), { at: 40, moved: false, isPlaying: false });
  assert.equal(standOf({ ...scrubbed, at: 40 }, data(3, 5)).at, 4);
});

test("what plays plays on", () => {
  const playing = { name: "slow 1", at: 12, moved: false, timer: 7 };
  const data = { name: "slow 1", at: 40, frames: Array(41) };
  assert.deepEqual(standOf(playing, data), { at: 12, moved: false, isPlaying: true });
  assert.equal(standOf(playing, { ...data, at: 0, frames: Array(1) }).isPlaying, false); // it trains anew
  assert.deepEqual(standOf(undefined, data), { at: 40, moved: false, isPlaying: false });
});
