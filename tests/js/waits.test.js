// What is said of open questions: the newest one's words, gone with its answer or its failure.
import assert from "node:assert/strict";
import { test } from "node:test";
import { waits } from "../../hookviz/explorer/client/waits.js";

const open = () => {
  const one = {};
  one.promise = new Promise((done, fail) => Object.assign(one, { done, fail }));
  return one;
};
const heard = (kind, says) => ({ facts: { kind, says } });

test("the newest wait is said, and the one before again once that is over", async () => {
  const line = { hidden: true, textContent: "" };
  const status = waits(line);
  const [first, second] = [open(), open()];
  let tell;
  const one = status.during("tiles", (hear) => {
    hear(heard("waits", "2 before you"));
    return first.promise;
  });
  assert.deepEqual(line, { hidden: false, textContent: "2 before you" });
  const two = status.during("cell", (hear) => {
    tell = hear;
    return second.promise;
  });
  assert.equal(line.textContent, "2 before you", "a question of which nothing is heard says nothing");
  tell(heard("partial", "a picture"));
  assert.equal(line.textContent, "2 before you");
  tell(heard("trouble", "cut off"));
  assert.equal(line.textContent, "cut off");
  second.fail(new Error("no"));
  await assert.rejects(two, /no/);
  assert.equal(line.textContent, "2 before you");
  first.done("answer");
  assert.equal(await one, "answer");
  assert.deepEqual(line, { hidden: true, textContent: "" });
});
