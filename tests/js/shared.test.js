// What every component uses: numbers and sentences for people, and what the server packed.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { floats, inSigns, number, say, unpacked } from "../../hookviz/explorer/client/shared.js";

beforeEach(() => {
  globalThis.window = {};
});

test("numbers have three digits, a real minus, and an exponent where they are small or large", () => {
  assert.equal(number(-2.34567), "−2.35");
  assert.equal(number(0), "0");
  assert.equal(number(123), "123");
  assert.equal(number(1e6), "1.00×10⁶");
  assert.equal(number(1234), "1,230");
  assert.equal(number(0.00041), "4.10×10⁻⁴");
  assert.equal(number(Number.NaN), "none");
  assert.equal(number(null), "none");
});

test("the decimal point is the page's", () => {
  window.hookvizPoint = ",";
  assert.equal(number(2.5), "2,50");
  assert.equal(inSigns("-0.5"), "−0,5");
  assert.equal(inSigns("-1.2345e-7"), "−1,2345×10⁻⁷");
  assert.equal(inSigns("1e+21"), "1×10²¹");
});

test("a sentence is in the page's language, with its facts, and another word is left alone", () => {
  window.hookvizWords = { "channel {channel}": "通道 {channel}" };
  assert.equal(say("channel {channel}", { channel: 12 }), "通道 12");
  assert.equal(say("row {row} of {rows}", { row: 0 }), "row 0 of {rows}");
});

test("what the server packed comes apart into facts and a picture", () => {
  const facts = new TextEncoder().encode(JSON.stringify({ layer: "conv1", says: "−1 ≤ x" }));
  const bytes = new Uint8Array(7 + 4 + facts.length + 3); // at an odd place of a larger buffer
  const part = bytes.subarray(7);
  new DataView(part.buffer, part.byteOffset).setUint32(0, facts.length, true);
  part.set(facts, 4);
  part.set([9, 8, 7], 4 + facts.length);
  const data = unpacked(part);
  assert.equal(data.layer, "conv1");
  assert.equal(data.says, "−1 ≤ x");
  assert.deepEqual([...data.picture], [9, 8, 7]);
});

test("float32 values arrive to the bit", () => {
  const values = new Float32Array([0.1, -Infinity, 3.4e38, Number.NaN]);
  const text = btoa(String.fromCharCode(...new Uint8Array(values.buffer)));
  assert.deepEqual(floats(text), values);
});
