// How brightly a map glows: nothing below zero, white at the brightest, and never less for more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { glowPixels } from "../../hookviz/ui/components/live_glow.js";

const brightness = (pixels, at) => pixels[4 * at] + pixels[4 * at + 1] + pixels[4 * at + 2];

test("a cell below zero gives no light, the brightest is white, and more is brighter", () => {
  const levels = Uint8Array.from({ length: 256 }, (_, level) => level);
  const pixels = glowPixels(levels, { low: -1, high: 3 }, 3);
  for (let at = 0; at < 256; at += 1) {
    const value = -1 + (4 * at) / 255;
    if (value <= 0) assert.equal(brightness(pixels, at), 0, `${value}`);
    if (at) assert.ok(brightness(pixels, at) >= brightness(pixels, at - 1));
    assert.equal(pixels[4 * at + 3], 255);
  }
  assert.deepEqual([...pixels.slice(-4)], [255, 255, 255, 255]);
});

test("a frame that answers less than the brightest one so far glows less", () => {
  const full = glowPixels(Uint8Array.of(255), { low: 0, high: 2 }, 2);
  const half = glowPixels(Uint8Array.of(255), { low: 0, high: 1 }, 2);
  assert.ok(brightness(half, 0) < brightness(full, 0));
  assert.deepEqual([...half], [...glowPixels(Uint8Array.of(128), { low: 0, high: 255 / 128 }, 2)]);
});

test("where nothing has been above zero nothing glows", () => {
  assert.equal(brightness(glowPixels(Uint8Array.of(255), { low: -2, high: -1 }, 0), 0), 0);
});
