// Values become levels of a palette, levels a picture, and the picture a PNG file.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inflateSync } from "node:zlib";
import { mosaic, quantised } from "../../hookviz/standalone/client/levels.js";
import { indexedPng } from "../../hookviz/standalone/client/png.js";

const scale = { limits: { low: [-2, 0, 3], high: [2, 1, 3] }, levels: 4, nan: 254, infinity: 253 };

test("each channel has its own ends, and what is no number its own level", () => {
  const values = Float32Array.from([-3, -2, -0.5, 0, 1.99, 9, 0, 0.26, 1, NaN, Infinity, -Infinity, 3, 3, 4, 2, 0, 3]);
  assert.deepEqual([...quantised(values, scale)], [0, 0, 1, 2, 3, 3, 0, 1, 3, 254, 253, 253, 0, 0, 0, 0, 0, 0]);
});

test("tiles lie where the geometry says, with gaps between", () => {
  const geometry = { columns: 2, tile: [1, 2], pitch: [2, 3], width: 5, height: 3 };
  const picture = mosaic(Uint8Array.from([1, 2, 3, 4, 5, 6]), geometry, 9);
  assert.deepEqual([...picture], [1, 2, 9, 3, 4, 9, 9, 9, 9, 9, 5, 6, 9, 9, 9]);
});

test("a picture of more than one block is a PNG of its rows", () => {
  const [width, height] = [300, 301];
  const levels = Uint8Array.from({ length: width * height }, (_, at) => (at * 7) % 256);
  const palette = Uint8Array.from({ length: 1024 }, (_, at) => at % 251);
  const file = Buffer.from(indexedPng(levels, width, palette));
  assert.equal(file.subarray(1, 4).toString(), "PNG");
  const chunks = {};
  for (let at = 8; at < file.length; ) {
    const size = file.readUInt32BE(at);
    chunks[file.subarray(at + 4, at + 8).toString()] = file.subarray(at + 8, at + 8 + size);
    at += 12 + size;
  }
  assert.deepEqual(Object.keys(chunks), ["IHDR", "PLTE", "tRNS", "IDAT", "IEND"]);
  const rows = inflateSync(chunks.IDAT); // which checks the sum at its end
  assert.equal(rows.length, (width + 1) * height);
  assert.deepEqual(
    rows.subarray(5 * (width + 1) + 1, 6 * (width + 1)),
    Buffer.from(levels.subarray(5 * width, 6 * width)),
  );
  assert.deepEqual([...chunks.tRNS.subarray(0, 2)], [palette[3], palette[7]]);
});
