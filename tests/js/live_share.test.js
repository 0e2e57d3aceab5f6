// What a teacher's page sends to the class is what pupils' pages read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { packFrame } from "../../hookviz/ui/components/live_share.js";
import { readAnswer } from "../../hookviz/ui/components/live_wire.js";

test("a frame is read as it was packed", () => {
  const pictures = [Uint8Array.of(1, 2, 3), Uint8Array.of(4)];
  const { blobs, ...facts } = readAnswer(
    packFrame({ layer: "stage1", channel: 3, score: ["圆", 0.5] }, pictures).buffer,
  );
  assert.deepEqual(facts, { layer: "stage1", channel: 3, score: ["圆", 0.5] });
  assert.deepEqual(
    blobs.map((each) => [...each]),
    pictures.map((each) => [...each]),
  );
});
