// How large the mirror's picture is in a window.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fitPicture } from "../../hookviz/ui/components/live_mirror.js";

const fits = (room, sides, counts) => {
  const { box, picture } = fitPicture(room, sides, counts);
  return [box, picture].map((pair) => pair.map(Math.round));
};

test("a picture of the room's shape fills it", () => {
  assert.deepEqual(fits([1200, 900], [640, 480], [0.75, 1]), [
    [1200, 900],
    [1200, 900],
  ]);
});

test("a wide one has the room's height, its sides outside, where the middle alone counts", () => {
  assert.deepEqual(fits([1200, 900], [1280, 720], [720 / 1280, 1]), [
    [1200, 900],
    [1600, 900],
  ]);
});

test("nothing that counts is outside", () => {
  assert.deepEqual(fits([1200, 900], [1280, 720], [1, 1]), [
    [1200, 675],
    [1200, 675],
  ]);
  assert.deepEqual(fits([390, 520], [1280, 720], [720 / 1280, 1]), [
    [390, 390],
    [693, 390],
  ]);
  assert.deepEqual(fits([1040, 720], [480, 640], [1, 0.75]), [
    [720, 720],
    [720, 960],
  ]);
});
