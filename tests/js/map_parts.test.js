// Where the parts of a network's map lie, and which is under a point.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  channelSteps,
  channelsIn,
  described,
  leafAt,
  partAround,
  partUnder,
  placed,
} from "../../hookviz/explorer/client/map_parts.js";

const leaf = (name, x, y) => ({ name, kind: "Conv2d", x, y, w: 1, h: 1 });
const network = {
  name: "",
  kind: "Net",
  size: [6, 2],
  lines: [
    [-1, 0, [0, 1, 0.5, 1]],
    [0, 1, [1.5, 1, 3, 1]],
    [1, -2, [5, 1, 6, 1]],
  ],
  parts: [
    leaf("conv", 0.5, 0.5),
    {
      name: "block",
      kind: "Block",
      x: 3,
      y: 0,
      w: 2,
      h: 2,
      size: [4, 2],
      lines: [
        [-1, 0, [0, 1, 0.5, 1]],
        [0, 1, [1.5, 1, 2.5, 1]],
        [1, -2, [3.5, 1, 4, 1]],
      ],
      parts: [leaf("block.0", 0.5, 0.5), leaf("block.1", 2.5, 0.5)],
    },
  ],
};

test("steps are counted in order, and blocks hold those in them", () => {
  const { root, byName, steps } = placed(network);
  assert.equal(steps, 3);
  assert.deepEqual([byName.get("block").first, byName.get("block").last], [2, 3]);
  assert.equal(leafAt(root, 3).facts.name, "block.1");
  assert.equal(byName.get("/"), root);
});

test("one is inside of the part that takes most of the window", () => {
  const { root, byName } = placed(network);
  const room = { width: 100, height: 100 };
  const at = (name, share) => {
    const { left, top, width, height } = byName.get(name).box;
    const scale = (share * 100) / Math.max(width, height);
    const camera = { x: left + width / 2 - 50 / scale, y: top + height / 2 - 50 / scale, scale };
    return partAround(root, camera, room).facts.name;
  };
  assert.equal(at("block", 0.8), "block");
  assert.equal(at("block", 0.4), "");
  assert.equal(at("block.1", 0.8), "block.1");
  assert.equal(at("conv", 3), "conv");
});

test("a card is the deeper the more channels the layer has", () => {
  const of = (...maps) => channelSteps({ facts: { maps } });
  assert.deepEqual([of(3, 8, 8), of(64, 8, 8), of(256, 8, 8), of(2048, 8, 8)], [1, 3, 4, 6]);
  assert.equal(channelSteps({ facts: {} }), 0);
});

test("a drawing lies within the card of its block, at one scale", () => {
  const { byName } = placed(network);
  const [outer, inner] = [byName.get("block").box, byName.get("block.0").box];
  assert.ok(inner.left > outer.left && inner.left + inner.width < outer.left + outer.width);
  assert.ok(Math.abs(inner.width - inner.height) < 1e-9);
  const first = byName.get("block").lines[0].points;
  assert.deepEqual(first[0], [outer.left, outer.top + outer.height / 2]);
  assert.ok(Math.abs(first.at(-1)[0] - inner.left) < 1e-9);
});

test("under a point is the innermost part that is open", () => {
  const { root, byName } = placed(network);
  const { left, top } = byName.get("block.1").box;
  const point = { x: left + 0.01, y: top + 0.01 };
  assert.equal(partUnder(root, point, () => true).facts.name, "block.1");
  assert.equal(partUnder(root, point, () => false).facts.name, "block");
  assert.equal(
    partUnder(root, { x: 2, y: 1.9 }, () => true),
    root,
  );
});

for (const [count, aspect] of [
  [1, 1],
  [7, 2],
  [64, 1],
  [2048, 0.5],
]) {
  test(`${count} channels lie in a card, each under its own place`, () => {
    const box = { left: 2, top: 3, width: 1, height: 2.5 };
    const board = channelsIn(box, count, aspect);
    for (const position of [0, Math.floor(count / 2), count - 1]) {
      const { left, top, width, height } = board.boxOf(position);
      assert.ok(left >= box.left && left + width <= box.left + box.width + 1e-9);
      assert.ok(top >= box.top && top + height <= box.top + box.height + 1e-9);
      assert.ok(Math.abs(width / height - aspect) < 1e-9);
      assert.equal(board.under({ x: left + width / 2, y: top + height / 2 }), position);
    }
    assert.equal(board.under({ x: 0, y: 0 }), null);
  });
}

test("a part that no line leads to says why", () => {
  globalThis.window = {};
  const { root, byName } = placed({
    ...network,
    lines: [[0, -2, [1.5, 1, 6, 1]]],
    parts: [...network.parts, { ...leaf("block", 5, 0), kind: "" }],
  });
  assert.match(described(byName.get("block")), /2 parts.*No line leads here/);
  assert.doesNotMatch(described(byName.get("block.0")), /No line/);
  assert.doesNotMatch(described(root), /No line/);
});
