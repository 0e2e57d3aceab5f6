// Where a tile is in the sprite, and the value that a pixel of it stands for.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { colourReader, inSprite, nearly } from "../../hookviz/explorer/client/tiles.js";

const sprite = { columns: 8, pitch: [15, 14], tile: [13, 12], height: 120 };

test("tiles lie row by row", () => {
  assert.deepEqual(inSprite(sprite, 0), [0, 0]);
  assert.deepEqual(inSprite(sprite, 7), [98, 0]);
  assert.deepEqual(inSprite(sprite, 8), [0, 15]);
});

// A canvas of one pixel over a picture of known colours: node has none of its own.
const looks = [];
let colour = [0, 0, 0, 255];
beforeEach(() => {
  globalThis.window = {};
  looks.length = 0;
  const pen = {
    canvas: {},
    clearRect() {},
    drawImage: (_picture, x, y) => looks.push([x, y]),
    getImageData: () => ({ data: colour }),
  };
  globalThis.document = { createElement: () => ({ getContext: () => pen }) };
});

const data = {
  geometry: sprite,
  limits: { low: Array(9).fill(-2), high: Array(9).fill(2) },
  levels: 4,
  palette: [0x000001, 0x000002, 0x000003, 0x000004, 0xff00ff, 0x00ffff],
  nan: 4,
  infinity: 5,
};

test("the value is the middle of the level whose colour the pixel has", () => {
  colour = [0, 0, 3, 255];
  assert.equal(nearly(colourReader({}, data)(8, [2, 5])), "≈ 0.500"); // the third of four levels of −2…2
  assert.deepEqual(looks, [[5, 17]]);
});

test("NaN and infinity have colours of their own, and what is not painted has no value", () => {
  colour = [255, 0, 255, 255];
  assert.equal(nearly(colourReader({}, data)(0, [0, 0])), "NaN");
  colour = [0, 255, 255, 255];
  assert.equal(nearly(colourReader({}, data)(0, [0, 0])), "infinite");
  colour = [0, 0, 0, 0];
  assert.equal(nearly(colourReader({}, data)(0, [0, 0])), null);
});

test("of a pair, A is read above B", () => {
  colour = [0, 0, 1, 255];
  colourReader({}, data)(0, [1, 1], sprite.height);
  assert.deepEqual(looks, [[1, 121]]);
});

test("where the values themselves are there, they are read", () => {
  const exact = (channel, row, column) => 100 * channel + 10 * row + column;
  const read = colourReader({}, { ...data, order: [7, 3], exact });
  assert.equal(read(1, [4, 2]), 342);
  assert.equal(looks.length, 0);
});
