// Thumbnails that behave as one group of radio buttons: Tab enters it, arrow keys move and choose.
export default function ({ data, parentElement, setTriggerValue }) {
  let group = parentElement.querySelector("[role=radiogroup]");
  if (!group) {
    group = document.createElement("div");
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-label", "Sample image");
    parentElement.appendChild(group);
    for (const item of data.items) {
      const button = document.createElement("button");
      const picture = document.createElement("img");
      picture.src = item.picture;
      picture.alt = "";
      button.append(picture);
      button.type = "button";
      button.title = item.title;
      button.dataset.name = item.name;
      button.setAttribute("role", "radio");
      button.setAttribute("aria-label", item.title);
      group.append(button);
    }
  }
  const buttons = [...group.children];
  const show = (name) => {
    for (const button of buttons) {
      const chosen = button.dataset.name === name;
      button.setAttribute("aria-checked", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
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
      if (!step) return;
      event.preventDefault();
      const next = buttons[(index + step + buttons.length) % buttons.length];
      next.focus();
      choose(next);
    };
  });
  show(data.chosen);
}
