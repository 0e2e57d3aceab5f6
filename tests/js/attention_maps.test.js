// What is drawn of attention: numbers of 16 bits, maps by cells, windows, and steps by arrow keys.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  attentionMaps,
  CLASS_TOKEN,
  stepped,
  strongest,
  weightsOf,
} from "../../hookviz/ui/components/attention_maps.js";

test("16 bits are read as IEEE 754 has them, in units of 1/1024", () => {
  // 1, 0.5, 3, the largest below 1, the smallest normal and subnormal number, 0
  const halves = [0x3c00, 0x3800, 0x4200, 0x3bff, 0x0400, 0x0001, 0x0000];
  const bytes = new Uint8Array(1 + 2 * halves.length); // not where a typed array could begin
  halves.forEach((half, at) => {
    bytes[1 + 2 * at] = half & 255;
    bytes[2 + 2 * at] = half >> 8;
  });
  const expected = [1, 0.5, 3, 1 - 2 ** -11, 2 ** -14, 2 ** -24, 0];
  assert.deepEqual(
    [...weightsOf(bytes.subarray(1))],
    expected.map((value) => value / 1024),
  );
});

const two = attentionMaps({
  heads: 2,
  queries: [
    [0, 1, 2],
    [3, 4, -1],
  ],
  keys: [
    [-1, 2, 1, 0],
    [5, 4, 3, -1],
  ],
  cells: 6,
  weights: Float32Array.from({ length: 2 * 2 * 3 * 4 }, (_, at) => at),
});

test("a map has a head's row, each number at its key's cell, and no number where no key is", () => {
  const nan = Number.NaN;
  assert.deepEqual([...two.map(0, 4)], [nan, nan, nan, 18, 17, 16]);
  assert.deepEqual([...two.map(1, 4)], [nan, nan, nan, 42, 41, 40]);
  assert.deepEqual([...two.map(0, 2)], [11, 10, 9, nan, nan, nan]);
  assert.deepEqual([...two.map(0, CLASS_TOKEN)], [3, 2, 1, nan, nan, nan]);
});

test("a cell that asks nothing has no map", () => {
  assert.ok(two.asks(4) && !two.asks(5));
  assert.ok(two.map(0, 5).every(Number.isNaN));
  assert.equal(strongest(two.map(0, 5))[0], -1);
});

test("the strongest is the largest number, the first of equal ones", () => {
  assert.deepEqual(strongest([Number.NaN, 0.25, 0.5, 0.5]), [2, 0.5]);
  assert.deepEqual(strongest([-2, -1]), [1, -1]);
});

test("arrows step from cell to cell and stay at the edges", () => {
  assert.equal(stepped("ArrowRight", 0, [2, 3]), 1);
  assert.equal(stepped("ArrowRight", 2, [2, 3]), 2);
  assert.equal(stepped("ArrowDown", 2, [2, 3]), 5);
  assert.equal(stepped("ArrowDown", 5, [2, 3]), 5);
  assert.equal(stepped("ArrowUp", 4, [2, 3]), 1);
  assert.equal(stepped("ArrowLeft", 3, [2, 3]), 3);
  assert.equal(stepped("Tab", 3, [2, 3]), null);
});
