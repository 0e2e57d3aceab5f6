// The page of a file: the explorer of one image, asked and answered in it.

import { answering } from "./answers.js";
import { blocksOf, bytesOf, textIn } from "./blocks.js";
import { around, failed } from "./page_around.js";

/** Begin to show what the document keeps, or say that it can't be shown. */
export const begin = () => show().catch(failed);

const show = async () => {
  const blocks = blocksOf(textIn(document));
  const page = await blocks.facts("page");
  around(page, { ask: answering(page, blocks, bytesOf) });
};
