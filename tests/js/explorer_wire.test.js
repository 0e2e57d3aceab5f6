// What becomes of a question where its server is gone: the page runs, and the question goes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { wire } from "../../hookviz/ui/components/explorer_wire.js";

globalThis.window = {}; // without words in another language
const said = () => ({ fragment: "layer=stem", number: 0 }); // what stands in the address

const message = (facts) => {
  const text = new TextEncoder().encode(JSON.stringify(facts));
  const bytes = new Uint8Array(8 + text.length);
  new DataView(bytes.buffer).setUint32(0, 4 + text.length, true);
  new DataView(bytes.buffer).setUint32(4, text.length, true);
  bytes.set(text, 8);
  return bytes;
};

test("a proxy without a server is asked again, and a server that knows no session has the page run once", async (t) => {
  let page = { token: "old", path: "/ask", language: "en", subject: "cat" };
  const asked = [];
  let runs = 0;
  let isBusy = true;
  t.mock.method(globalThis, "fetch", async (address) => {
    asked.push(new URLSearchParams(address.split("?")[1]).get("token"));
    if (asked.length === 1) return new Response("<html>", { status: 502 });
    if (page.token === "old") return Response.json({ says: "over" }, { status: 410 });
    return new Response(message({ kind: "answer", layer: "conv1" }));
  });
  const { ask } = wire(() => page, {
    run: () => {
      runs += 1;
      setTimeout(() => (page = { ...page, token: "new" }), 250); // as a run hands it over
    },
    isBusy: () => isBusy,
    said,
  });
  const heard = [];
  const answer = ask(
    { name: "layers" },
    { signal: new AbortController().signal, view: {}, subject: "cat", on: ({ facts }) => heard.push(facts.kind) },
  );
  await new Promise((done) => setTimeout(done, 900));
  assert.equal(runs, 0, "while its own line is cut, or it runs, the page is left alone");
  isBusy = false;
  assert.equal((await answer).facts.layer, "conv1");
  assert.equal(runs, 1);
  assert.deepEqual(asked, ["old", "old", "new"]);
  assert.deepEqual(heard, ["trouble", "trouble"]);
});

// A wire to a server that answers one thing after the other, and what is heard on the way.
const wired = (t, responses, subject = "cat") => {
  const asked = [];
  t.mock.method(globalThis, "fetch", async () => {
    asked.push(performance.now());
    return responses[Math.min(asked.length, responses.length) - 1]();
  });
  t.mock.method(globalThis, "setTimeout", (act, milliseconds) => {
    pauses.push(milliseconds);
    return setImmediate(act);
  });
  t.mock.method(globalThis, "clearTimeout", clearImmediate);
  const [heard, pauses] = [[], []];
  const page = { token: "one", path: "/ask", language: "en", subject };
  const { ask } = wire(() => page, { run: () => {}, isBusy: () => false, said });
  const options = { signal: new AbortController().signal, view: {}, subject: "cat" };
  const answer = ask({ name: "layers" }, { ...options, on: ({ facts }) => heard.push(facts.says) });
  return { answer, asked, heard, pauses };
};

test("a server that is started again is waited for, but not for ever", async (t) => {
  const { answer, asked } = wired(t, [() => Response.json({ says: "starting" }, { status: 503 })]);
  await assert.rejects(answer, /starting/);
  assert.equal(asked.length, 13);
});

test("what the server can't do is said, and not asked for again", async (t) => {
  const { answer, asked } = wired(t, [() => Response.json({ says: "no memory" }, { status: 507 })]);
  await assert.rejects(answer, /no memory/);
  assert.equal(asked.length, 1);
});

test("who asks too much waits as long as the server says, and a while where it says nothing", async (t) => {
  const refuse = (headers) => () => Response.json({ says: "too many" }, { status: 429, headers });
  const responses = [refuse({ "Retry-After": "3" }), refuse({ "Retry-After": "0" }), refuse({ "Retry-After": "soon" })];
  const last = () => new Response(message({ kind: "answer", layer: "conv1" }));
  const { answer, heard, pauses } = wired(t, [...responses, last]);
  assert.equal((await answer).facts.layer, "conv1");
  assert.deepEqual(heard, Array(3).fill("too many"));
  assert.deepEqual(
    pauses.filter((each) => each < 60000),
    [3000, 1000, 2000],
  );
});

test("a question about what the page no longer shows is left, and the page is not loaded anew", async (t) => {
  const { answer, asked } = wired(t, [() => Response.json({ says: "another" }, { status: 409 })], "dog");
  await assert.rejects(answer, { name: "AbortError" });
  assert.equal(asked.length, 1);
});
