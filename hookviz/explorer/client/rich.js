// Sentences with words in bold and words that are explained, put into elements.

import { explain } from "./shared.js";

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
 * Names with their values, two columns side by side.
 * @param {Element} element
 * @param {[string, string][]} rows
 */
export const listed = (element, rows) =>
  element.replaceChildren(
    ...rows.flatMap(([name, value]) => {
      const [left, right] = [document.createElement("span"), document.createElement("b")];
      [left.textContent, right.textContent] = [name, value];
      return [left, right];
    }),
  );
