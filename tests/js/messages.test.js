// Messages come whole out of a line that cuts them anywhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import { messageReader } from "../../hookviz/explorer/client/messages.js";

// As Python packs one: the length of the rest, the length of a text, the text, a file's bytes.
const packed = (facts, data = []) => {
  const text = new TextEncoder().encode(JSON.stringify(facts));
  const bytes = new Uint8Array(8 + text.length + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, 4 + text.length + data.length, true);
  view.setUint32(4, text.length, true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
};

const SAID = [
  [{ kind: "waits", position: 2, says: "通道" }, []],
  [{ kind: "partial", steps: 3 }, [1, 2, 3]],
  [{ kind: "answer", picture: "data:image/png;base64," }, Array.from({ length: 300 }, (_, at) => at % 256)],
];
const LINE = SAID.flatMap(([facts, data]) => [...packed(facts, data)]);

for (const size of [1, 2, 3, 5, 7, 64, LINE.length]) {
  test(`messages in pieces of ${size} bytes`, () => {
    const taken = [];
    const reader = messageReader(({ facts, data }) => taken.push([facts, [...data]]));
    for (let at = 0; at < LINE.length; at += size) reader.push(new Uint8Array(LINE.slice(at, at + size)));
    assert.deepEqual(taken, SAID);
    assert.equal(reader.left(), 0);
  });
}

test("what is not whole is not taken", () => {
  const taken = [];
  const reader = messageReader((message) => taken.push(message));
  reader.push(new Uint8Array(LINE.slice(0, -1)));
  assert.equal(taken.length, 2);
  assert.ok(reader.left() > 0);
  reader.push(new Uint8Array(LINE.slice(-1)));
  assert.equal(taken.length, 3);
});

test("a file outlives the line that it came on", () => {
  const taken = [];
  const line = packed({ kind: "answer" }, [5, 6, 7]);
  messageReader((message) => taken.push(message)).push(line);
  line.fill(0);
  assert.deepEqual([...taken[0].data], [5, 6, 7]);
});
