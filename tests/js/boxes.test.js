// Where on the photograph a cell looks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { around, boxOf, over } from "../../hookviz/explorer/client/boxes.js";

test("a box is made of its row's edges and its column's", () => {
  const rows = [
    [0, 0.25],
    [0.2, 0.5],
  ];
  const columns = [
    [0.1, 0.3],
    [0.3, 0.6],
    [0.6, 1],
  ];
  assert.deepEqual(boxOf({ rows, columns, boxes: null }, [1, 2]), [0.2, 0.6, 0.5, 1]);
  assert.equal(boxOf({ rows, columns, boxes: null }, [2, 0]), null); // no such row
});

test("or each cell has its own", () => {
  const boxes = [[[0, 0, 1, 1]], [[0.1, 0.2, 0.3, 0.4]]];
  assert.deepEqual(boxOf({ rows: null, columns: null, boxes }, [1, 0]), [0.1, 0.2, 0.3, 0.4]);
  assert.equal(boxOf({ rows: null, columns: null, boxes }, [1, 1]), null);
});

test("what is not known is not framed", () => {
  assert.equal(boxOf(null, [0, 0]), null);
  assert.equal(boxOf({ rows: null, columns: null, boxes: null }, [0, 0]), null);
});

test("a crop lies over the photograph, and can reach past it", () => {
  assert.deepEqual(over({ top: -0.125, left: 0.25, bottom: 1.125, right: 0.75 }), {
    top: "-12.5%",
    left: "25%",
    width: "50%",
    height: "125%",
  });
});

test("a frame stays within the photograph", () => {
  assert.deepEqual(around([-0.5, 0.25, 0.75, 1.5]), {
    top: "max(0px, 0% - 4px)",
    left: "max(0px, 25% - 4px)",
    bottom: "max(0px, 25% - 4px)",
    right: "max(0px, 0% - 4px)",
  });
});
