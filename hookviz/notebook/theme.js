// Whether the page around a notebook's output is dark or light, by the marks of those that are known.

/**
 * @param {Pick<Document, "body" | "documentElement">} page
 * @param {() => boolean} [isWishedDark] what the system says, where the page says nothing
 * @returns {"dark" | "light"}
 */
export const themeOf = (page, isWishedDark = () => matchMedia("(prefers-color-scheme: dark)").matches) => {
  const { dataset, classList } = page.body;
  if (dataset.jpThemeLight) return dataset.jpThemeLight === "false" ? "dark" : "light"; // JupyterLab, Notebook 7
  if (dataset.theme) return dataset.theme === "dark" ? "dark" : "light"; // marimo
  const isOf = (/** @type {string[]} */ ...names) => names.some((name) => classList.contains(name));
  if (isOf("vscode-light", "vscode-high-contrast-light")) return "light";
  if (isOf("vscode-dark", "vscode-high-contrast")) return "dark";
  const colab = page.documentElement.getAttribute("theme");
  return (colab ? colab === "dark" : isWishedDark()) ? "dark" : "light";
};
