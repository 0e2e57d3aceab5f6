// Which cell is meant: by a link, by an arrow key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellOf, inLink, stepped } from "../../hookviz/explorer/client/cells.js";

test("a link's cell is the same place on a map of another size", () => {
  assert.deepEqual(cellOf("3,4,8,8", 16, 16, 0), [7, 9]); // as Cell.on of view.py has it
  assert.deepEqual(cellOf("20,33,64,64", 8, 8, 0), [2, 4]);
  assert.deepEqual(cellOf("3,4", 8, 8, 0), [3, 4]);
  assert.deepEqual(cellOf("7,9", 5, 6, 0), [4, 5]); // the last that there is
});

test("without a cell, and of nonsense, the strongest is looked at", () => {
  for (const text of [undefined, null, "", "3", "-1,2", "3,4,5", "1234567,0", "3,4 "]) {
    assert.deepEqual(cellOf(text, 7, 10, 35), [3, 5]);
  }
  assert.deepEqual(cellOf("2,2,0,0", 4, 4, 0), [3, 3]); // of a map without cells
});

test("a cell is written as it is read", () => {
  assert.equal(inLink([3, 4], 8, 9), "3,4,8,9");
  assert.deepEqual(cellOf(inLink([3, 4], 8, 9), 8, 9, 0), [3, 4]);
});

test("arrow keys stay on the map, and other keys lead nowhere", () => {
  assert.deepEqual(stepped([0, 0], "ArrowUp", 3, 4), [0, 0]);
  assert.deepEqual(stepped([2, 3], "ArrowRight", 3, 4), [2, 3]);
  assert.deepEqual(stepped([1, 1], "ArrowDown", 3, 4), [2, 1]);
  assert.deepEqual(stepped([1, 1], "ArrowLeft", 3, 4), [1, 0]);
  assert.equal(stepped([1, 1], "Enter", 3, 4), null);
  assert.equal(stepped([1, 1], "toString", 3, 4), null);
});
