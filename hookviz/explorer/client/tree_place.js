// The tree of layers, where there is a place for it, below the choice of which layers are listed. The
// place may come later than the explorer, and it stands elsewhere on the page.

import { newest } from "./asking.js";
import { frame, say } from "./shared.js";
import { layerTree } from "./tree.js";

const FRAME = `
  <div class="tree-place">
    <label class="switch listed" hidden><input type="checkbox" role="switch"><span>All maps</span></label>
    <div class="layers"></div>
  </div>`;

/**
 * The tree's place.
 * @param {{
 *   ask: (question: Facts, options: any) => Promise<import("./asking.js").Answered>,
 *   change: (choices: Record<string, string | null>) => void,
 *   about: () => string,
 * }} explorer who asks, of what view and subject is said; what is told of a choice; what is chosen now
 */
export const treePlace = ({ ask, change, about }) => {
  /** @type {any} */
  let parts = null;
  /** @type {any} */
  let layers = null;
  let [view, subject] = [/** @type {Record<string, string>} */ ({}), ""]; // that the layers are of
  const questions = newest((question, options) => ask(question, { ...options, view, subject }));

  // Beyond conv layers the one before is gone back to, which the list of conv layers says.
  const list = (listed) => {
    if (listed === "maps") return change({ layers: "maps", layer: layers.layer }); // the first is another there
    const at = layers.options.findIndex((option) => option.name === layers.layer);
    const before = new Set(layers.options.slice(0, at + 1).map((option) => option.name));
    const asked = about();
    ask({ name: "layers" }, { view: {}, subject }).then(({ facts }) => {
      if (about() !== asked) return draw(); // something else was chosen since
      const conv = facts.options.findLast((option) => before.has(option.name)) ?? facts.options[0];
      change({ layers: null, layer: conv.name });
    }, draw); // without an answer the list stays
  };

  const draw = () => {
    if (!parts || !layers) return;
    parts.listed.hidden = !layers.listed;
    Object.assign(parts.toggle, { checked: layers.listed === "maps", disabled: !layers.hasUsual });
    parts.tree.mark(layers.layer);
    questions.ask({ name: "tree" }, [subject, layers.listed], {
      answered: ({ facts }) => {
        parts?.tree.show({ ...facts, chosen: layers.layer });
      },
      failed: () => {}, // the tiles say why; without a tree the row above them leads everywhere
    });
  };

  const leave = () => {
    parts?.tree.end();
    parts?.find(".tree-place")?.remove();
    parts = null;
  };

  return {
    /**
     * Stand in an element from now on, or nowhere.
     * @param {(ParentNode & Node) | null} element
     */
    stand: (element) => {
      if (parts?.element === element) return;
      leave();
      if (!element) return;
      const find = frame(element, FRAME);
      const tree = layerTree(find(".layers"), {
        pick: (layer) => change({ layer, ...(layers.listed === "maps" ? { layers: "maps" } : {}) }),
      });
      const [listed, toggle] = [find(".listed"), find(".listed input")];
      listed.title = say("Conv layers, or whatever puts out maps: norms, activations, pooling, blocks.");
      toggle.onchange = () => list(toggle.checked ? "maps" : "conv");
      parts = { element, find, tree, listed, toggle };
      draw();
    },
    /**
     * Show the layers of the server's answer about them.
     * @param {any} facts
     * @param {Record<string, string>} ofView
     * @param {string} ofSubject
     */
    show: (facts, ofView, ofSubject) => {
      if (ofSubject !== subject) questions.forget();
      [layers, view, subject] = [facts, ofView, ofSubject];
      draw();
    },
    end: () => {
      questions.end();
      leave();
    },
  };
};
