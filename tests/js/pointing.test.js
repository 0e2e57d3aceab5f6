// Which tile and which cell lie under the pointer, at any size, zoom and density of the screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellAt, nearestCell, pointing, tileAt } from "../../hookviz/explorer/client/pointing.js";
import { GAP } from "../../hookviz/explorer/client/tiling.js";

test("the cell under the pointer is found in a picture of any size", () => {
  const box = { left: 10, top: 20, width: 100, height: 50 };
  const at = (x, y) => cellAt(box, { x, y }, 5, 10);
  assert.deepEqual(at(10, 20), [0, 0]);
  assert.deepEqual(at(109.9, 69.9), [4, 9]);
  assert.deepEqual(at(65, 35), [1, 5]);
  assert.equal(at(110, 30), null);
  assert.equal(at(50, 19.9), null);
  assert.deepEqual(nearestCell(box, { x: 500, y: 0 }, 5, 10), [0, 9]);
});

test("every point of a tile is that tile's, and every point of a cell that cell's", () => {
  for (const [wide, high] of [
    [30, 30],
    [37, 52],
    [128, 96],
    [411, 411],
  ]) {
    for (const [rows, columns] of [
      [1, 1],
      [7, 10],
      [13, 13],
      [64, 64],
      [112, 112],
    ]) {
      const lie = { columns: 5, wide, high, first: 20, last: 33 };
      for (let at = lie.first; at < lie.last; at += 1) {
        const left = ((at - lie.first) % 5) * (wide + GAP);
        const top = Math.floor((at - lie.first) / 5) * (high + GAP);
        for (const [row, column] of [
          [0, 0],
          [rows - 1, columns - 1],
          [rows >> 1, columns >> 1],
        ]) {
          for (const share of [0.01, 0.5, 0.99]) {
            const point = { x: left + ((column + share) * wide) / columns, y: top + ((row + share) * high) / rows };
            assert.equal(tileAt(lie, point), at);
            assert.deepEqual(nearestCell({ left, top, width: wide, height: high }, point, rows, columns), [
              row,
              column,
            ]);
          }
        }
      }
    }
  }
});

test("between two tiles it is the nearest, and after the last there is none", () => {
  const lie = { columns: 3, wide: 30, high: 30, first: 0, last: 5 };
  assert.equal(tileAt(lie, { x: 31, y: 10 }), 0);
  assert.equal(tileAt(lie, { x: 32, y: 10 }), 1);
  assert.equal(tileAt(lie, { x: -5, y: 200 }), 3);
  assert.equal(tileAt(lie, { x: 80, y: 50 }), null);
});

test("a click is where the pointer was, though it is told in whole pixels", () => {
  const heard = {};
  const where = pointing({ addEventListener: (kind, listener) => (heard[kind] = listener) });
  assert.deepEqual(where({ clientX: 7, clientY: 9 }), { x: 7, y: 9 }); // of a keyboard or another tool
  for (const density of [1, 1.25, 2]) {
    for (let pixel = 100; pixel < 110; pixel += 1) {
      const [x, y] = [pixel / density, (pixel + 3) / density];
      heard.pointermove({ clientX: x, clientY: y });
      assert.deepEqual(where({ clientX: x, clientY: y }), { x, y });
      assert.deepEqual(where({ clientX: Math.floor(x), clientY: Math.floor(y) }), { x, y });
    }
  }
  assert.deepEqual(where({ clientX: 5, clientY: 5 }), { x: 5, y: 5 });
});
