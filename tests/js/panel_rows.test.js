// Where panels lie: side by side, within the height that is free, and never too small to be read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, GAP } from "../../hookviz/ui/components/panel_rows.js";

const shape = (aspect, more = {}) => ({
  aspect,
  stretch: aspect,
  most: 640,
  least: [190, 90],
  around: () => 60,
  ...more,
});
const chart = shape(1.7, { stretch: 4, most: 900, least: [220, 90] });

for (const [name, shapes] of Object.entries({
  "one picture": [shape(1.5)],
  "two that are compared": [shape(1.5), shape(1.5)],
  "a picture, a chart": [shape(1), chart],
  "three charts": [chart, chart, chart],
  "six pictures": Array(6).fill(shape(1)),
})) {
  for (const [width, height] of [
    [1140, 560],
    [940, 380],
    [370, 440],
  ]) {
    test(`${name} in ${width} × ${height}`, () => {
      const rows = arrange(shapes, width, height, 700);
      assert.equal(rows.flat().length, shapes.length);
      let at = 0;
      rows.forEach((row) => {
        const across = row.reduce((sum, { wide }) => sum + wide + GAP, -GAP);
        assert.ok(across <= width, "within the width");
        for (const { wide, high } of row) {
          const { most, around } = shapes[at++];
          assert.ok(wide <= most, "not blown up");
          if (row === rows[0]) assert.ok(high + around(wide) <= height, "within the height");
        }
      });
    });
  }
}

test("pictures that are compared are of one size", () => {
  const [[one, other]] = arrange([shape(1.5), shape(1.5)], 940, 380, 700);
  assert.deepEqual(one, other);
});

test("what would be too small follows below", () => {
  const rows = arrange(Array(12).fill(shape(1)), 370, 300, 700);
  assert.ok(rows.length > 2);
  assert.ok(rows.flat().every(({ high }) => high >= 90));
});

test("a table is as large as it is, and the chart has the rest", () => {
  const table = shape(1, { fixed: true, least: [400, 160] });
  const [[one, other]] = arrange([table, chart], 940, 380, 700);
  assert.deepEqual(one, { wide: 400, high: 160 });
  assert.equal(other.wide, 940 - 400 - GAP);
});

test("a map with long words lies beside the chart in a low window", () => {
  const words = (wide) => 80 + 23 * Math.ceil(600 / wide) + 18 * Math.ceil(567 / wide);
  const map = shape(1, { stretch: 3, most: 560, tallest: 400, least: [200, 80], around: words });
  const rows = arrange([map, chart], 940, 348, 700);
  assert.equal(rows.length, 1);
  const [{ wide, high }] = rows[0];
  assert.ok(high + words(wide) <= 348 && wide > high);
});

test("a map is no higher than it may be, however much room there is", () => {
  const [[{ wide, high }]] = arrange([shape(1, { stretch: 3, most: 560, tallest: 400 })], 1140, 800, 800);
  assert.deepEqual({ wide, high }, { wide: 560, high: 400 });
});

test("maps that are compared are of one size, with words wider than they are", () => {
  const map = shape(1, { stretch: 3, most: 900 });
  const [[one, other]] = arrange([map, map], 1140, 300, 700);
  assert.equal(one.wide, other.wide);
});
