// How tiles are laid out: all of them in the window where they can be, and never out of it.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fit, GAP } from "../../hookviz/explorer/client/tiling.js";

beforeEach(() => {
  globalThis.window = { innerWidth: 1440 };
});

const rows = (count, columns) => Math.ceil(count / columns);

for (const count of [1, 3, 64, 96, 256, 512]) {
  for (const [wide, high] of [
    [1080, 700],
    [760, 520],
    [500, 900],
  ]) {
    for (const aspect of [0.5, 1, 2]) {
      test(`${count} tiles of ${aspect} in ${wide} × ${high}`, () => {
        const { columns, tile, page } = fit(count, aspect, wide, high);
        assert.equal(page, count);
        assert.ok(columns * (tile + GAP) - GAP <= wide, "as wide as the place at most");
        assert.ok(tile >= 30 && tile <= (count === 1 ? 400 / Math.min(1, aspect) : 128));
        const tall = rows(count, columns) * (tile * aspect + GAP);
        if (tile > 30) assert.ok(tall <= high + GAP + tile * aspect, "as high as the window, nearly");
      });
    }
  }
}

test("more columns would make each tile smaller, fewer would not fit", () => {
  const { columns, tile } = fit(64, 1, 1000, 700);
  const fits = (n) => Math.min(Math.floor((1000 - (n - 1) * GAP) / n), Math.floor(700 / rows(64, n) - GAP));
  const best = Math.max(...Array.from({ length: 64 }, (_, at) => Math.min(128, fits(at + 1))));
  assert.ok(tile >= 0.85 * best, `${columns} columns of ${tile}, where ${best} is the largest`);
});

test("a phone has pages of six columns and three rows at least", () => {
  globalThis.window = { innerWidth: 390 };
  const { columns, page, tile } = fit(512, 1, 358, 100);
  assert.equal(columns, 6);
  assert.equal(page, 18);
  assert.equal(tile, Math.floor((358 - 5 * GAP) / 6));
});
