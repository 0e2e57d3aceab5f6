// What an answer lights: the share along each line and into each part, and which class is under a point.
import assert from "node:assert/strict";
import { test } from "node:test";
import { classUnder, litBy } from "../../hookviz/explorer/client/class_paths.js";

const part = (name, parent = null, parts = []) => ({ facts: { name }, parent, parts });
const root = part("");
root.parts = [part("conv", root), part("add", root)];
const facts = {
  class: 3,
  sprite: null,
  blocks: {
    "/": [
      [null, "conv", 1],
      ["conv", "add", 0.25],
      [null, "add", 0.75],
      ["add", null, 1],
    ],
  },
  layers: { conv: { channels: [7, 2], tile: 4, shares: [[7, 0.5]] } },
};

test("a line has the share that the answer says of its ends; another has none", () => {
  const lit = litBy(facts);
  assert.equal(lit.class, 3);
  assert.equal(lit.along(root, { from: 0, to: 1 }), 0.25);
  assert.equal(lit.along(root, { from: -1, to: 1 }), 0.75);
  assert.equal(lit.along(root, { from: 1, to: -2 }), 1);
  assert.equal(lit.along(root, { from: 1, to: 0 }), 0);
  assert.equal(lit.along(root.parts[0], { from: -1, to: -2 }), 0);
});

test("into a part comes what all its lines bring", () => {
  const lit = litBy(facts);
  assert.equal(lit.into(root.parts[1]), 1);
  assert.equal(lit.into(part("aside", root)), 0);
  assert.equal(lit.into(root), 1);
});

test("a layer's channels are those that the class needs", () => {
  const lit = litBy(facts);
  assert.deepEqual(lit.layer(root.parts[0]).channels, [7, 2]);
  assert.equal(lit.layer(root.parts[1]), null);
});

test("under a point is a class within their box alone", () => {
  const box = { left: 10, top: 20, width: 30, height: 50 };
  assert.equal(classUnder(box, 5, { x: 15, y: 20 }), 0);
  assert.equal(classUnder(box, 5, { x: 15, y: 69 }), 4);
  assert.equal(classUnder(box, 5, { x: 15, y: 70 }), null);
  assert.equal(classUnder(box, 5, { x: 9, y: 30 }), null);
  assert.equal(classUnder(box, 0, { x: 15, y: 30 }), null);
});
