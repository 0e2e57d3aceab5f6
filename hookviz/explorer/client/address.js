// The address of an activation, as Python writes it: `layer`, `layer#1`, `layer[0]`, `layer#1[mask]`.

const WRITTEN = /^((?:[^\\#[\]]|\\.)*)(?:#[0-9]{1,9})?(?:\[(?:[^\\#[\]]|\\.)*\])*$/s;

/**
 * The layer of an address; any other text stands for the layer of that name.
 * @param {string} text
 */
export const layerOf = (text) => {
  const found = WRITTEN.exec(text);
  return found ? found[1].replace(/\\(.)/gs, "$1") : text;
};
