// What is typed above the tree of layers, and which rows have it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isFound } from "../../hookviz/explorer/client/tree.js";

const conv = { name: "features.3.squeeze", number: "13", facts: "3×3 /2 · 256×13×13 sees 35 px · 12.3 k · 2.1 M" };
const block = { name: "features.3", number: "7", facts: "Fire · 128×54×54 sees the whole image" };

test("a layer is found by all that its row shows", () => {
  for (const text of [
    "256×13×13",
    "256x13x13",
    "13x13",
    "13 X 13",
    "3x3",
    "3*3",
    "SQUEEZE",
    "12.3 k",
    "13",
    "",
    "35 px",
  ]) {
    assert.ok(isFound(conv, text), text);
  }
  assert.ok(isFound(block, "fire"));
  for (const text of ["fire", "5x5", "relu", "256", "14", "112x112"]) assert.ok(!isFound(conv, text), text);
});
