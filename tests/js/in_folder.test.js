import assert from "node:assert/strict";
import test from "node:test";

import { along, filled } from "../../hookviz/standalone/client/in_folder.js";

test("facts stand in a sentence, in any order, and what is no fact stays", () => {
  assert.equal(filled("{b} of {a}: {c}", { a: "1", b: "<2>" }), "<2> of 1: {c}");
});

test("links take along what was picked, once, and those within a page are left alone", () => {
  const picked = new URLSearchParams({ lang: "zh-CN", theme: "dark" });
  assert.equal(along("../index.html", picked), "../index.html?lang=zh-CN&theme=dark");
  assert.equal(along("3.html?lang=en#channel-2", picked), "3.html?lang=zh-CN&theme=dark#channel-2");
  assert.equal(along("#channel-2", picked), "#channel-2");
  assert.equal(along("3.html", new URLSearchParams()), "3.html");
});
