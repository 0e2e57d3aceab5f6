// What is read of a document that is still being loaded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf, textIn } from "../../hookviz/standalone/client/blocks.js";

const loading = (elements) => {
  const document = { readyState: "loading", getElementById: (name) => elements[name] ?? null };
  document.addEventListener = (_kind, done) => {
    document.loaded = () => {
      document.readyState = "interactive";
      done();
    };
  };
  return document;
};

test("an element is read as soon as another follows it", async () => {
  const document = loading({ first: { textContent: "all of it", nextElementSibling: {} } });
  assert.equal(await textIn(document)("first"), "all of it");
});

test("of one that is being read the beginning alone is not taken", async () => {
  const elements = { last: { textContent: "the begi", nextElementSibling: null } };
  const document = loading(elements);
  const text = textIn(document)("last");
  elements.last.textContent = "the beginning and the end";
  document.loaded();
  assert.equal(await text, "the beginning and the end");
});

test("one that comes later is waited for, and one that never comes is none", async () => {
  const elements = {};
  const document = loading(elements);
  const textOf = textIn(document);
  const [text, none] = [textOf("later"), textOf("never")];
  elements.later = { textContent: "aGk=", nextElementSibling: null };
  document.loaded();
  assert.deepEqual([await text, await none], ["aGk=", null]);
  const blocks = blocksOf(textOf);
  assert.equal(Buffer.from(await blocks.bytes("later")).toString(), "hi");
  assert.deepEqual([await blocks.bytes("never"), await blocks.facts("never")], [null, null]);
});
