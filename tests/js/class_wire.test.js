// What a class's page does when its line ends: it gives up, or tries again and says why.
import assert from "node:assert/strict";
import { test } from "node:test";

/** @type {any[]} */
const sockets = [];

class FakeSocket {
  static OPEN = 1;
  readyState = 0;
  constructor() {
    sockets.push(this);
  }
  close() {}
  send() {}
}

Object.assign(globalThis, {
  WebSocket: FakeSocket,
  location: { origin: "http://class.example" },
  document: { hidden: false, addEventListener() {}, removeEventListener() {} },
  addEventListener() {},
  removeEventListener() {},
});
const { openClass } = await import("../../hookviz/ui/components/class_wire.js");

const closedWith = (context, code) => {
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  sockets.length = 0;
  const states = [];
  const on = { news() {}, state: (...state) => states.push(state.join(" ")), here: () => "follows" };
  const wire = openClass({ path: "/hookviz/class", code: "K7MP3X", token: "t" }, on);
  sockets[0].onclose({ code });
  for (let second = 0; second < 60; second++) context.mock.timers.tick(1000);
  wire.close();
  return [states, sockets.length];
};

test("a server that is full is said to be, and is tried again", (context) => {
  assert.deepEqual(closedWith(context, 4430), [["full"], 2]);
});

test("a line that is cut is tried again", (context) => {
  assert.deepEqual(closedWith(context, 1006), [["lost"], 2]);
});

test("a class that does not know the page is over for it", (context) => {
  const [states, tries] = closedWith(context, 4401);
  assert.equal(tries, 1);
  assert.deepEqual(new Set(states), new Set(["over unknown"]));
  assert.ok(states.length > 10, "told again, as long as the page's own line is cut");
  context.mock.timers.tick(60_000);
  assert.equal(states.length, 13, "and no more once the page has heard it");
});
