// A view and a link are two ways to write the same choices; what is not the explorer's stays as it is.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changed,
  channelOf,
  faceOf,
  forLink,
  isSame,
  ofLayer,
  ofStep,
  viewOf,
} from "../../hookviz/explorer/client/link.js";

const FIELDS = [
  { word: "model", default: null, values: null, isPage: true },
  { word: "layer", default: null, values: null },
  { word: "sort", default: "index", values: ["index", "max", "mean"] },
  { word: "patches", default: "false", values: ["false", "true"] },
  { word: "channel", default: null, values: null },
  { word: "cell", default: null, values: null },
];

test("a link is read word by word, without the page's own and without what can't be chosen", () => {
  const view = viewOf("?model=ShapesNet&layer=stem&sort=mean&patches=false&channel=3&cell=1%2C2&lens=x", FIELDS);
  assert.deepEqual(view, { layer: "stem", sort: "mean", channel: "3", cell: "1,2" });
  assert.deepEqual(viewOf("sort=loud&patches=yes&layer=", FIELDS), { layer: "" });
  assert.deepEqual(viewOf(`layer=${"x".repeat(1001)}`, FIELDS), {});
});

test("what a link was written from is what is read from it", () => {
  for (const view of [{}, { layer: "a & b = 通道", channel: "0" }, { patches: "true", sort: "max", cell: "3,4" }]) {
    const link = new URLSearchParams({ model: "x", a: "b", ...view }).toString();
    assert.ok(isSame(viewOf(link, FIELDS), view));
  }
});

test("a choice changes the view, and a default or null takes it back", () => {
  const view = { layer: "a", sort: "max" };
  assert.deepEqual(changed(view, { channel: 3, sort: "index" }, FIELDS), { layer: "a", channel: "3" });
  assert.deepEqual(changed(view, { layer: null, sort: "loud", nothing: "x" }, FIELDS), {});
  assert.deepEqual(view, { layer: "a", sort: "max" }, "and the one before stays");
});

test("a choice writes its own words, and leaves those of a link that is about something else by now", () => {
  const view = { layer: "of the network before", sort: "max", channel: "3" };
  assert.deepEqual(forLink(view, ["channel", "cell"], "?model=Other&layer=new&cell=1,2"), { channel: "3", cell: null });
  assert.deepEqual(forLink(view, ["channel", "cell"], "?channel=3"), {}, "what it says already is no change");
});

test("views are the same by what they say, in any order", () => {
  assert.ok(isSame({ layer: "a", channel: "1" }, { channel: "1", layer: "a" }));
  assert.ok(!isSame({ layer: "a" }, { layer: "a", channel: "1" }));
  assert.ok(!isSame({ layer: "a", channel: "2" }, { layer: "a", channel: "1" }));
});

test("an answer about the layer depends on nothing that is picked", () => {
  const view = { layer: "a", sort: "max", channel: "1", cell: "1,2", origin: "Kernel", made: "256-0" };
  assert.deepEqual(ofLayer({ ...view, scale: "layer", top: "16" }), { layer: "a", scale: "layer" });
});

test("what a layer is depends on neither what is picked nor how it is drawn, in whatever order it was chosen", () => {
  const one = { sort: "max", layer: "a", compare: "Split", after: "relu", channel: "1" };
  const other = { after: "relu", channel: "2", layer: "a", patches: "true" };
  assert.equal(JSON.stringify(ofStep(one)), JSON.stringify(ofStep(other)));
  assert.deepEqual(ofStep(one), { layer: "a", after: "relu" });
  const turned = { after: "relu", compare: "Split", layer: "a", sort: "max" };
  assert.equal(JSON.stringify(ofLayer(one)), JSON.stringify(ofLayer(turned)));
});

test("a pair has the face that the link says, B's where it says none; the difference is neither's", () => {
  const faces = [{ compare: "A" }, {}, { compare: "Split" }, { compare: "Difference" }, { compare: "a" }].map(faceOf);
  assert.deepEqual(faces, ["a", "b", "split", null, null]);
});

test("a channel is a number of digits", () => {
  assert.equal(channelOf({ channel: "12" }), 12);
  for (const channel of ["", "-1", "1.5", "1234567", "no", undefined]) assert.equal(channelOf({ channel }), null);
});
