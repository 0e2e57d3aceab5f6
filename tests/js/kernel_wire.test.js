// A question over a kernel's comm: its answer, and what is said where the kernel is busy or was restarted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { kernelWire } from "../../hookviz/notebook/wire.js";

globalThis.window = {};

// The widget's other half, as anywidget hands it over, with what was sent and a way to answer.
const halves = () => {
  const heard = {};
  const sent = [];
  return {
    sent,
    isClosed: false,
    send(message) {
      if (this.isClosed) throw new Error("Cannot send");
      sent.push(message);
    },
    on: (event, hear) => (heard[event] = hear),
    off: (event) => delete heard[event],
    heard,
    says: (message, file) =>
      heard["msg:custom"](message, file ? [new DataView(new Uint8Array([9, ...file]).buffer, 1)] : []),
  };
};
const asked = (ask, options = {}) => {
  const said = [];
  const ends = new AbortController();
  const answer = ask(
    { name: "tiles" },
    {
      signal: ends.signal,
      view: { layer: "conv1" },
      subject: "dark abc",
      on: ({ facts }) => said.push(facts),
      ...options,
    },
  );
  answer.catch(() => {});
  return { answer, said, ends };
};

test("a question goes out with its view, key and colours, and the answer of its number comes back", async () => {
  const model = halves();
  const { ask } = kernelWire(model, () => {});
  const [one, other] = [asked(ask), asked(ask)];
  const [first, second] = model.sent;
  assert.deepEqual(first, {
    ask: first.ask,
    question: { name: "tiles" },
    view: { layer: "conv1" },
    subject: "abc",
    theme: "dark",
  });
  assert.notEqual(first.ask, second.ask);
  model.says({ number: "of another view", kind: "answer", facts: {} });
  model.says({ number: second.ask, kind: "answer", facts: { of: 2 } }, [1, 2]);
  model.says({ number: first.ask, kind: "partial", facts: { of: 0 } });
  model.says({ number: first.ask, kind: "refused", facts: { says: "no" } });
  assert.deepEqual(await other.answer, { facts: { of: 2 }, data: new Uint8Array([1, 2]) });
  await assert.rejects(one.answer, /^Error: no$/);
  assert.deepEqual(one.said, [{ kind: "partial", of: 0 }]);
});

test("one that is left is told so, and its answer goes nowhere", async () => {
  const model = halves();
  const { ask } = kernelWire(model, () => {});
  const { answer, ends, said } = asked(ask);
  ends.abort();
  await assert.rejects(answer, { name: "AbortError" });
  assert.deepEqual(model.sent.at(-1), { leave: model.sent[0].ask });
  model.says({ number: model.sent[0].ask, kind: "partial", facts: {} });
  assert.deepEqual(said, []);
});

test("a kernel that says nothing for a second is busy, until it is heard of", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const model = halves();
  const { ask } = kernelWire(model, () => {});
  const { said } = asked(ask);
  t.mock.timers.tick(999);
  assert.deepEqual(said, []);
  t.mock.timers.tick(1);
  assert.match(said[0].says, /busy/);
  model.says({ number: model.sent[0].ask, kind: "heard", facts: {} });
  assert.deepEqual(said[1], { kind: "waits", says: "" });
  const quick = asked(ask);
  model.says({ number: model.sent[1].ask, kind: "heard", facts: {} });
  t.mock.timers.tick(5000);
  assert.ok(!quick.said.some(({ says }) => says), "who was heard waits without a word");
});

test("where the kernel was restarted that is said once for all questions, until it is heard of", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const model = halves();
  const notices = [];
  const { ask, end } = kernelWire(model, (words) => notices.push(words));
  const before = asked(ask);
  model.heard.comm_live_update();
  const after = asked(ask);
  t.mock.timers.tick(5000);
  assert.match(notices[0], /restarted/);
  model.says({ number: model.sent[1].ask, kind: "answer", facts: {} });
  await after.answer;
  assert.deepEqual(notices.slice(1), [""]);
  model.isClosed = true;
  await assert.rejects(asked(ask).answer, { name: "AbortError" });
  assert.match(notices.at(-1), /restarted/);
  assert.deepEqual([...before.said, ...after.said], []);
  end();
  assert.deepEqual(model.heard, {});
});
