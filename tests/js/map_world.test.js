import assert from "node:assert/strict";
import { test } from "node:test";
import { worldOf } from "../../hookviz/explorer/client/map_world.js";

const NETWORK = {
  size: [8, 2],
  lines: [[0, 1, [1, 1, 7, 1]]],
  parts: [
    { name: "a", x: 0, y: 0, w: 1, h: 2 },
    { name: "b", x: 7, y: 0, w: 1, h: 2 },
  ],
  tall: {
    size: [2, 6],
    lines: [[0, 1, [1, 1, 0, 5]]],
    places: [
      [0, 0],
      [0, 4],
    ],
  },
};

const holds = (outer, inner) =>
  outer.left <= inner.left &&
  outer.top <= inner.top &&
  outer.left + outer.width >= inner.left + inner.width &&
  outer.top + outer.height >= inner.top + inner.height;

for (const isTall of [false, true]) {
  test(`photograph and classes lie beside the network, ${isTall ? "one below the other" : "side by side"}`, () => {
    const { drawn, all, classes, photograph } = worldOf(NETWORK, isTall);
    const [width, height] = drawn.size;
    for (const box of [classes, photograph(300, 200), photograph(200, 300), { left: 0, top: 0, width, height }]) {
      assert.ok(holds(all, box), JSON.stringify([all, box]));
    }
    const before = photograph(300, 200);
    if (isTall) {
      assert.ok(before.top + before.height < 0 && classes.top > height);
      assert.deepEqual([drawn.parts[1].x, drawn.parts[1].y, drawn.parts[1].w], [0, 4, 1]);
    } else assert.ok(before.left + before.width < 0 && classes.left > width);
  });
}

test("a network of one part has one drawing", () => {
  assert.deepEqual(worldOf({ name: "" }, true).drawn, { name: "" });
});
