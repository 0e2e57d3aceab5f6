import assert from "node:assert/strict";
import { test } from "node:test";
import { afterHead, counted } from "../../hookviz/ui/components/page.js";

// What Streamlit does: a draw for each data, and what the last one returned where the component goes;
// and at once what one returned that was not through when newer data came.
const mounted = (hasHead) => {
  const head = new EventTarget();
  globalThis.window = Object.assign(head, { hookvizWords: hasHead ? {} : undefined });
  const did = [];
  const parentElement = { isConnected: true };
  const draw = afterHead(({ data }) => {
    did.push(data);
    return () => did.push("end");
  });
  return { did, head, parentElement, draw: (data) => draw({ data, parentElement }) };
};

test("a draw that newer data overtook ends nothing of what the next one goes on with", () => {
  const { did, draw, parentElement } = mounted(true);
  const overtaken = draw("first");
  overtaken();
  const last = draw("second");
  assert.deepEqual(did, ["first", "second"]);
  parentElement.isConnected = false;
  last();
  assert.deepEqual(did, ["first", "second", "end"]);
});

test("what waits for the head draws when it is there, unless it has gone by then", () => {
  const { did, draw, head, parentElement } = mounted(false);
  draw("first")();
  draw("second");
  assert.deepEqual(did, []);
  head.dispatchEvent(new Event("hookviz:head"));
  assert.deepEqual(did, ["first", "second"]);

  const other = mounted(false);
  const leave = other.draw("first");
  other.parentElement.isConnected = false;
  leave();
  other.head.dispatchEvent(new Event("hookviz:head"));
  assert.deepEqual(other.did, []);
  assert.equal(parentElement.isConnected, true);
});

test("what the server has not heard yet is sent once more with the next, and numbers grow", () => {
  const sent = [];
  const component = {
    parentElement: {},
    setTriggerValue: (name, values) => sent.push([name, structuredClone(values)]),
  };
  const tell = counted(component, 0);
  tell("did", "a");
  tell("did", "b");
  assert.deepEqual(
    sent.map(([name, values]) => [name, values.map(({ value }) => value)]),
    [
      ["did", ["a"]],
      ["did", ["a", "b"]],
    ],
  );
  const [first, second] = sent[1][1].map(({ number }) => number);
  assert.ok(second > first);

  const heardFirst = counted(component, first); // of a run that heard the first alone
  heardFirst("did", "c");
  assert.deepEqual(
    sent[2][1].map(({ value }) => value),
    ["b", "c"],
  );

  const elsewhere = counted({ ...component, parentElement: {} }, 2 * Date.now()); // by a clock that went back
  elsewhere("did", "d");
  assert.ok(sent[3][1][0].number > 2 * Date.now() - 1000);
});
