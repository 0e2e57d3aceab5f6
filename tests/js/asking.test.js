// Of the questions of one name the newest wins, an older one is aborted, and what is known asks nobody.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newest } from "../../hookviz/explorer/client/asking.js";

// A server that answers when it is told to, in any order, and doesn't care who has gone.
const server = () => {
  const asked = [];
  const ask = (question, { signal, on }) =>
    new Promise((done, fail) => {
      const one = { question, signal, on, done: (value) => done({ facts: { value }, data: new Uint8Array(0) }), fail };
      signal.addEventListener("abort", () => one.isDeaf || fail(new DOMException("", "AbortError")));
      asked.push(one);
    });
  return { asked, ask };
};
const later = () => new Promise((done) => setTimeout(done));

test("an older question of the name is aborted, and its answer is not heard even where it comes", async () => {
  const { asked, ask } = server();
  const questions = newest(ask);
  const heard = [];
  const listen = { answered: ({ facts }) => heard.push(facts.value), failed: (words) => heard.push(words) };
  questions.ask({ name: "tiles" }, "a", listen);
  asked[0].isDeaf = true;
  questions.ask({ name: "tiles" }, "b", listen);
  questions.ask({ name: "layers" }, "b", listen);
  assert.equal(asked[0].signal.aborted, true);
  assert.equal(asked[1].signal.aborted, false);
  asked[1].done("tiles of b");
  asked[0].done("tiles of a");
  asked[2].done("layers of b");
  await later();
  assert.deepEqual(heard, ["tiles of b", "layers of b"]);
});

test("what was answered is known at once; the same question on its way is asked once", async () => {
  const { asked, ask } = server();
  const questions = newest(ask);
  const heard = [];
  const listen = (who) => ({ answered: ({ facts }) => heard.push(`${who} ${facts.value}`) });
  questions.ask({ name: "cell", row: 1 }, "a", listen("one"));
  questions.ask({ name: "cell", row: 1 }, "a", listen("two"));
  assert.equal(asked.length, 1);
  asked[0].done("x");
  await later();
  questions.ask({ name: "cell", row: 2 }, "a", listen("open"));
  questions.ask({ name: "cell", row: 1 }, "a", listen("three"));
  assert.deepEqual(heard, ["two x", "three x"], "in the same turn of the browser");
  assert.equal(asked[1].signal.aborted, true, "one that is known is the newest all the same");
  assert.equal(asked.length, 2);
});

test("a failure is said in its words, an abort is not, and neither is kept", async () => {
  const { asked, ask } = server();
  const questions = newest(ask);
  const said = [];
  const listen = { answered: () => said.push("answered"), failed: (words) => said.push(words) };
  questions.ask({ name: "tiles" }, "a", listen);
  asked[0].fail(new Error("There is no layer 'x'."));
  await later();
  questions.ask({ name: "tiles" }, "a", listen);
  assert.equal(asked.length, 2);
  questions.leave("tiles");
  await later();
  assert.deepEqual(said, ["There is no layer 'x'."]);
  assert.equal(questions.known({ name: "tiles" }, "a"), null);
});

test("what is told on the way is heard of the newest alone, and at the end nothing is open", async () => {
  const { asked, ask } = server();
  const questions = newest(ask);
  const told = [];
  const listen = { answered: () => {}, on: (message) => told.push(message) };
  questions.ask({ name: "own_picture", steps: 1 }, "a", listen);
  asked[0].on("first");
  questions.ask({ name: "own_picture", steps: 2 }, "a", listen);
  asked[0].on("late");
  asked[1].on("second");
  assert.deepEqual(told, ["first", "second"]);
  questions.end();
  assert.equal(asked[1].signal.aborted, true);
});

test("the oldest answers go as soon as all weigh too much, the newest never", async () => {
  const asked = [];
  const ask = async (question) => {
    asked.push(question.row);
    return { facts: { says: "x".repeat(20) }, data: new Uint8Array(question.row === 9 ? 500 : 67) };
  };
  const questions = newest(ask, 250); // two of 100 bytes each
  const isKnown = (row) => questions.known({ name: "cell", row }, "a") !== null;
  for (const row of [1, 2]) {
    questions.ask({ name: "cell", row }, "a", { answered: () => {} });
    await later();
  }
  questions.ask({ name: "cell", row: 1 }, "a", { answered: () => {} }); // looked at again, so it is newer
  questions.ask({ name: "cell", row: 3 }, "a", { answered: () => {} });
  await later();
  assert.deepEqual([1, 2, 3].map(isKnown), [true, false, true]);
  questions.ask({ name: "cell", row: 9 }, "a", { answered: () => {} });
  await later();
  assert.deepEqual([1, 3, 9].map(isKnown), [false, false, true]);
  questions.forget();
  questions.ask({ name: "cell", row: 1 }, "a", { answered: () => {} });
  await later();
  questions.ask({ name: "cell", row: 2 }, "a", { answered: () => {} });
  await later();
  assert.deepEqual([1, 2, 9].map(isKnown), [true, true, false], "what was forgotten weighs nothing");
  assert.deepEqual(asked, [1, 2, 3, 9, 1, 2]);
});
