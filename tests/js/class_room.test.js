// Where the card of a question stands, and what it leaves to the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { roomFor } from "../../hookviz/ui/components/class_room.js";

const seen = (more) => ({
  ...{ isOpen: true, isGame: false, isPresented: false, width: 350, height: 300, window: 1280, side: 300 },
  ...more,
});

test("beside the page where the choices are, which no question is about", () => {
  assert.deepEqual(roomFor(seen({})), { right: 0, below: 0, left: 8, width: 284 });
});

test("in a column of its own where there is no sidebar, the presenter's too", () => {
  assert.deepEqual(roomFor(seen({ side: 0 })), { right: 366, below: 0, left: -1, width: -1 });
  assert.deepEqual(roomFor(seen({ isPresented: true })), { right: 366, below: 64, left: -1, width: -1 });
});

test("below on a phone, and folded", () => {
  assert.deepEqual(roomFor(seen({ window: 390, side: 0 })), { right: 0, below: 308, left: -1, width: -1 });
  const folded = roomFor(seen({ window: 390, side: 0, isOpen: false, height: 45.5 }));
  assert.equal(folded.below, 54);
  assert.equal(roomFor(seen({ isOpen: false, isPresented: true, height: 50 })).below, 122);
});

test("over the page for a riddle, which has all that it asks about in it", () => {
  assert.deepEqual(roomFor(seen({ isGame: true })), { right: 0, below: 0, left: -1, width: -1 });
  assert.equal(roomFor(seen({ isGame: true, isOpen: false })).left, 8);
});
