// What a page of a file reads and writes of its address, and which language it speaks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { saidIn, saying } from "../../hookviz/standalone/client/in_address.js";
import { nearest } from "../../hookviz/standalone/client/nearest.js";

const address = (search = "", hash = "") => ({ search, hash });

test("what follows the # counts before the query", () => {
  const said = saidIn(address("?layer=a&channel=1", "#channel=2"));
  assert.deepEqual([said.get("layer"), said.get("channel")], ["a", "2"]);
});

test("the query is written where it can be, and what it says of other things stays", () => {
  const link = address("?embed=1&channel=1", "");
  assert.equal(saying(link, { channel: "7", layer: "a b" }, true), "?embed=1&channel=7&layer=a+b");
  assert.equal(saying(link, { channel: null }, true), "?embed=1");
});

test("else it is written behind the #, and what the query says goes there too", () => {
  const link = address("?channel=1&embed=1", "#sort=max");
  assert.equal(saying(link, { channel: "7" }, false), "#sort=max&channel=7");
  const without = saying(link, { channel: null, sort: null }, false);
  assert.equal(saidIn(address(link.search, without)).get("channel"), "");
  assert.equal(saidIn(address(link.search, without)).has("sort"), false);
});

test("the language is the first that one asks for, or another kind of it", () => {
  const known = ["en", "zh-CN"];
  assert.equal(nearest(["zh-CN", "en"], known), 1);
  assert.equal(nearest(["fr", "zh-Hant-TW"], known), 1);
  assert.equal(nearest(["", "en-GB"], known), 0);
  assert.equal(nearest(["fr"], known), 0);
});
