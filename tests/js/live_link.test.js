// The picked channel of a stream: keys over many channels are one step of the browser's Back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { channelInLink } from "../../hookviz/ui/components/live_link.js";

// A link that notes what is written into it.
const linked = (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const link = new URLSearchParams();
  const [shown, written] = [[], []];
  globalThis.window = { hookvizLink: () => link };
  const channel = channelInLink(
    (picked) => shown.push(picked),
    (picked) => {
      written.push(picked);
      if (picked === null) link.delete("channel");
      else link.set("channel", String(picked));
    },
  );
  return { link, channel, shown, written };
};

test("the channel that keys rest on is written, and all are shown", (t) => {
  const { channel, shown, written } = linked(t);
  for (const picked of [3, 4, 5]) channel.pick(picked, 400);
  channel.follow(); // the link is behind, and takes nothing back
  assert.deepEqual([shown, written, channel.picked], [[3, 4, 5], [], 5]);
  t.mock.timers.tick(400);
  assert.deepEqual(written, [5]);
  channel.pick(null);
  t.mock.timers.tick(0);
  assert.deepEqual(written, [5, null]);
});

test("what waits is written before another thing is, and never after it", (t) => {
  const { channel, written } = linked(t);
  channel.pick(7, 400);
  channel.settle();
  assert.deepEqual(written, [7]);
  t.mock.timers.tick(1000);
  channel.settle();
  assert.deepEqual(written, [7]);
});

test("the browser's Back is followed", (t) => {
  const { link, channel, shown } = linked(t);
  link.set("channel", "9");
  channel.follow();
  channel.follow();
  assert.deepEqual([shown, channel.picked], [[9], 9]);
});
