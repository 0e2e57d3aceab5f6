// What the inspector reads from a link and from answers.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { inWords, layerOf } from "../../hookviz/explorer/client/address.js";
import { channelOf } from "../../hookviz/explorer/client/inspector.js";
import { requested } from "../../hookviz/explorer/client/own_picture.js";
import { inCommon, valuesOf } from "../../hookviz/explorer/client/pair.js";
import { say } from "../../hookviz/explorer/client/shared.js";

beforeEach(() => {
  globalThis.window = {};
});

test("a channel is picked where it is among those that are shown", () => {
  assert.equal(channelOf("12", [3, 12]), 12);
  for (const text of [undefined, "", "4", "-3", "3.0", "x", "٣", "0000003"]) {
    assert.equal(channelOf(text, [3, 12]), null);
  }
});

test("a link asks for a picture by its steps and its seed, or for none", () => {
  assert.deepEqual(requested("256-3"), { steps: 256, seed: 3 });
  assert.deepEqual(requested("2048-999999999"), { steps: 2048, seed: 999999999 });
  for (const text of [undefined, "", "0-1", "2049-0", "256", "256-", "-1-2", "256-1234567890"]) {
    assert.equal(requested(text), null);
  }
});

test("the layer of an address is without its call and its part", () => {
  assert.equal(layerOf("layer1.0.conv1"), "layer1.0.conv1");
  assert.equal(layerOf("relu#1"), "relu");
  assert.equal(layerOf("block[0]"), "block");
  assert.equal(layerOf("block#12[mask][1]"), "block");
  assert.equal(layerOf("a\\#1"), "a#1"); // a name with a sign of addresses in it
  assert.equal(layerOf("a]b"), "a]b"); // no address: it stands for itself
});

test("a person reads calls counted from 1, and names as they are", () => {
  assert.equal(inWords("relu"), "relu");
  assert.equal(inWords("layer1.0.relu#1"), "layer1.0.relu, call 2");
  assert.equal(inWords("block#11[mask]"), "block, call 12[mask]");
  assert.equal(inWords("a\\#1"), "a\\#1"); // no call: a name with that sign in it
  window.hookvizWords = { "{layer}, call {number}": "{layer}（第 {number} 次调用）" };
  assert.equal(inWords("relu#1"), "relu（第 2 次调用）");
});

// float32 numbers as base64, as Python writes them.
const encoded = (...values) => Buffer.from(new Float32Array(values).buffer).toString("base64");

test("a pair's numbers are those of the cell that is looked at", () => {
  const labels = { aHere: "A", bHere: "B", meanDifference: "mean", correlation: "r", cosine: "cos" };
  const facts = { meanDifference: "0.1", correlation: "0.9", cosine: "0.8", labels };
  const rows = inCommon({ ...facts, a: { values: encoded(1, 2, -3) } }, new Float32Array([4, 5, 6]), 2);
  assert.deepEqual(rows, [
    ["A", "−3.00"],
    ["B", "6.00"],
    ["mean", "0.1"],
    ["r", "0.9"],
    ["cos", "0.8"],
  ]);
  const large = inCommon({ ...facts, a: { values: null } }, null, 2); // too large to be sent
  assert.deepEqual([large[0][1], large[1][1]], ["…", "…"]);
});

test("values are read once, and there are none of a map that was too large", () => {
  const answer = { values: encoded(0.5, -1) };
  assert.deepEqual([...(valuesOf(answer) ?? [])], [0.5, -1]);
  assert.equal(valuesOf(answer), valuesOf(answer));
  assert.equal(valuesOf({ values: null }), null);
  assert.equal(valuesOf(null), null);
});

test("a count in a sentence has its thousands apart, and what has no fact is left alone", () => {
  assert.equal(say("{shape:,} of {term}", { shape: 1234567 }), "1,234,567 of {term}");
  assert.equal(say("{shape:,}", { shape: 999 }), "999");
  assert.equal(say("{shape:,}"), "{shape:,}");
});
