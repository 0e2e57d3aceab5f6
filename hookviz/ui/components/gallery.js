// Thumbnails that behave as one group of radio buttons: Tab enters it, arrow keys move and choose.

import { make, unpacked } from "../../explorer/client/shared.js";

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  let group = parentElement.querySelector("[role=radiogroup]");
  if (!group) {
    group = make("div", { role: "radiogroup", "aria-label": data.label });
    parentElement.appendChild(group);
  }
  group.setAttribute("aria-label", data.label);
  const made = new Map([...group.children].map((button) => [button.dataset.name, button]));
  const build = ({ title, name, picture }) =>
    make(
      "button",
      { type: "button", title, "data-name": name, role: "radio", "aria-label": title },
      make("img", { src: picture, alt: "" }),
    );
  const names = data.items.map((item) => item.name).join();
  if (names !== [...made.keys()].join()) {
    // Those that stay keep their element, and so the focus.
    const wanted = data.items.map((item) => made.get(item.name) ?? build(item));
    for (const [, button] of made) {
      if (!wanted.includes(button)) button.remove();
    }
    wanted.forEach((button, index) => {
      if (group.children[index] !== button) group.insertBefore(button, group.children[index]);
    });
  }
  const buttons = [...group.children];
  buttons.forEach((button, index) => {
    button.title = data.items[index].title; // which another language has other words for
    button.setAttribute("aria-label", button.title);
  });
  const show = (name) => {
    for (const button of buttons) {
      const chosen = button.dataset.name === name;
      button.setAttribute("aria-checked", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
    if (!buttons.some((button) => button.tabIndex === 0) && buttons.length) buttons[0].tabIndex = 0;
  };
  const choose = (button) => {
    show(button.dataset.name);
    setTriggerValue("picked", button.dataset.name);
  };
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  buttons.forEach((button, index) => {
    button.onclick = () => choose(button);
    button.onkeydown = (event) => {
      const step = steps[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const next = buttons[(index + step + buttons.length) % buttons.length];
      next.focus();
      choose(next);
    };
  });
  show(data.chosen);
}
