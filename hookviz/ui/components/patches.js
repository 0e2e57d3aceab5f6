// Patches of images in a row, each a way to its image.

import { frame, unpacked } from "./shared.js";

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const group = frame(parentElement, `<div role="group"></div>`)("[role=group]");
  group.setAttribute("aria-label", data.label);
  group.style.setProperty("--columns", data.columns);
  group.replaceChildren(
    ...data.items.map(({ title, picture }, rank) => {
      const button = document.createElement("button");
      const image = document.createElement("img");
      [image.src, image.alt] = [picture, ""];
      [button.type, button.title] = ["button", title];
      button.setAttribute("aria-label", title);
      button.append(image);
      button.onclick = () => setTriggerValue("picked", rank);
      return button;
    }),
  );
}
