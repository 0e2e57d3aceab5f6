// Whether a notebook is dark, by the marks of those that are known.
import assert from "node:assert/strict";
import { test } from "node:test";
import { themeOf } from "../../hookviz/notebook/theme.js";

const page = ({ jp, marimo, classes = [], colab = null }) => ({
  body: {
    dataset: { ...(jp && { jpThemeLight: jp }), ...(marimo && { theme: marimo }) },
    classList: { contains: (name) => classes.includes(name) },
  },
  documentElement: { getAttribute: (name) => (name === "theme" ? colab : null) },
});

for (const [what, marks, theme] of [
  ["JupyterLab, dark", { jp: "false" }, "dark"],
  ["JupyterLab, light on a dark system", { jp: "true" }, "light"],
  ["marimo, dark", { marimo: "dark" }, "dark"],
  ["marimo, light on a dark system", { marimo: "light" }, "light"],
  ["VS Code, dark", { classes: ["vscode-dark"] }, "dark"],
  ["VS Code, light", { classes: ["vscode-light"] }, "light"],
  ["VS Code, dark in high contrast", { classes: ["vscode-high-contrast"] }, "dark"],
  ["VS Code, light in high contrast", { classes: ["vscode-high-contrast", "vscode-high-contrast-light"] }, "light"],
  ["Colab, dark", { colab: "dark" }, "dark"],
  ["Colab, light", { colab: "light" }, "light"],
]) {
  test(what, () =>
    assert.equal(
      themeOf(page(marks), () => theme !== "dark"),
      theme,
    ),
  );
}

test("a page without a known mark is as the system wishes", () => {
  assert.equal(
    themeOf(page({}), () => true),
    "dark",
  );
  assert.equal(
    themeOf(page({}), () => false),
    "light",
  );
});
