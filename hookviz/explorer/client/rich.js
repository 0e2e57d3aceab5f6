// Sentences with words in bold and words that are explained, put into elements.

import { explain, say } from "./shared.js";

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
      const holder = document.createElement(isBold ? "b" : "span");
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
      const [left, right] = [document.createElement("span"), document.createElement("b")];
      left.textContent = name;
      if (cell && led) {
        const link = document.createElement("button");
        [link.type, link.className, link.textContent] = ["button", "plain", value];
        link.title = say("row {row}, column {column}", { row: cell[0], column: cell[1] });
        link.onclick = () => led(cell);
        right.append(link);
      } else right.textContent = value;
      return [left, right];
    }),
  );
