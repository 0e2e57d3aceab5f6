// Sentences with words in bold and words that are explained, put into elements.

import { explain, make, say } from "./shared.js";

/**
 * Text in which what stands between two times ** is bold.
 * @param {Element} element
 * @param {[string, string][]} parts of [text, sentence], as `explain` has them
 */
export const rich = (element, parts) => {
  let isBold = false;
  const pieces = parts.flatMap(([text, sentence]) =>
    text.split("**").map((piece, at) => {
      if (at) isBold = !isBold;
      const holder = make(isBold ? "b" : "span");
      explain(holder, [[piece, sentence]]);
      return piece ? holder : "";
    }),
  );
  element.replaceChildren(...pieces.filter(Boolean));
};

/**
 * Names with their values, two columns side by side; one that is a cell's leads there.
 * @param {Element} element
 * @param {[string, string, ([number, number] | null)?][]} rows
 * @param {(cell: [number, number]) => void} [led]
 */
export const listed = (element, rows, led) =>
  element.replaceChildren(
    ...rows.flatMap(([name, value, cell]) => {
      const says = () => say("row {row}, column {column}", { row: cell?.[0], column: cell?.[1] });
      const linked = cell && led && { type: "button", title: says(), onclick: () => led(cell) };
      return [make("span", {}, name), make("b", {}, linked ? make("button", linked, value) : value)];
    }),
  );
