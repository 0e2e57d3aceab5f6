// A kernel that walks over the first rows of its input: at each step the patch under it, the
// products, and the cell that their sum gives. Nothing moves by itself until a person presses play.

const FRAME = `
  <div class="walk" role="group" aria-label="The kernel's walk over its input">
    <div class="maps">
      <figure><canvas class="input"></canvas><figcaption class="input-says"></figcaption></figure>
      <figure><canvas class="output"></canvas><figcaption class="output-says"></figcaption></figure>
    </div>
    <div class="sum">
      <figure><table class="patch"></table><figcaption>under the kernel</figcaption></figure>
      <span>×</span>
      <figure><table class="kernel"></table><figcaption>kernel</figcaption></figure>
      <span>=</span>
      <figure><table class="products"></table><figcaption>products</figcaption></figure>
    </div>
    <p class="says"></p>
    <div class="controls">
      <button type="button" class="back" title="One step back">◀</button>
      <button type="button" class="play">▶ Play</button>
      <button type="button" class="forth" title="One step on">▶</button>
      <label>Step <input class="step" type="range" min="0" step="1"></label>
      <label>Speed <input class="speed" type="range" min="1" max="20" value="4"></label>
    </div>
  </div>`;

const timers = new WeakMap(); // one per place on the page, so that a new run ends the old walk

export default function ({ data, parentElement }) {
  const find = frame(parentElement, FRAME);
  const root = find(".walk");
  const [input, output, says] = [".input", ".output", ".says"].map(find);
  const [play, slider, speed] = [".play", ".step", ".speed"].map(find);
  const { columns, rows, stride, dilation, kernel } = data;
  const steps = rows * columns;
  clearInterval(timers.get(root));
  const same = root.dataset.walk === data.name; // as before this run: stay where it was
  root.dataset.walk = data.name;
  let at = same ? Math.min(Number(root.dataset.at ?? 0), steps - 1) : 0;
  let running = false;

  const ink = getComputedStyle(root).color;
  const accent = getComputedStyle(root).getPropertyValue("--st-primary-color");
  const colour = (value, most) => {
    const share = most ? Math.min(1, Math.abs(value) / most) : 0;
    return value < 0 ? `rgba(59, 111, 182, ${share})` : `rgba(194, 96, 60, ${share})`;
  };
  const largest = (lists) => Math.max(0, ...lists.flat().map((value) => Math.abs(value ?? 0)));

  const draw = (canvas, values, most, known) => {
    const side = Math.max(6, Math.min(26, Math.floor(560 / values[0].length)));
    canvas.width = values[0].length * side;
    canvas.height = values.length * side;
    const pen = canvas.getContext("2d");
    pen.strokeStyle = "rgba(128, 128, 128, 0.35)";
    values.forEach((row, y) =>
      row.forEach((value, x) => {
        if (!known || known(y, x)) {
          pen.fillStyle = value === null ? data.notFinite : colour(value, most);
          pen.fillRect(x * side, y * side, side, side);
        }
        pen.strokeRect(x * side + 0.5, y * side + 0.5, side, side);
      }),
    );
    return [pen, side];
  };

  // Large kernels get shorter numbers, so that all three tables fit beside each other.
  const short = (value) => {
    if (value === 0) return "0";
    if (kernel[0].length > 7) return "";
    return kernel[0].length > 4 ? value.toPrecision(1).replace("-", "−") : number(value);
  };
  const fill = (table, values, most, inside) => {
    table.replaceChildren(
      ...values.map((row, y) => {
        const line = document.createElement("tr");
        row.forEach((value, x) => {
          const cell = document.createElement("td");
          cell.textContent = short(value);
          cell.style.background = colour(value, most);
          if (inside && !inside[y][x]) cell.className = "padding";
          line.append(cell);
        });
        return line;
      }),
    );
  };

  const most = { input: largest(data.input), kernel: largest(kernel), output: largest(data.output) };

  const show = () => {
    root.dataset.at = at;
    const [row, column] = [Math.floor(at / columns), at % columns];
    const taps = kernel.map((line, y) =>
      line.map((_, x) => [row * stride[0] + y * dilation[0], column * stride[1] + x * dilation[1]]),
    );
    const patch = taps.map((line) => line.map(([y, x]) => data.input[y][x]));
    const inside = taps.map((line) => line.map(([y, x]) => data.inside[y][x]));
    const products = patch.map((line, y) => line.map((value, x) => value * kernel[y][x]));
    const sum = products.flat().reduce((total, value) => total + value, 0);
    const whole = data.output[row][column];
    const others = whole - sum - (data.bias ?? 0);

    const [pen, side] = draw(input, data.input, most.input);
    pen.fillStyle = "rgba(128, 128, 128, 0.25)";
    data.inside.forEach((line, y) =>
      line.forEach((is, x) => is || pen.fillRect(x * side, y * side, side, side)),
    );
    pen.lineWidth = 2.5;
    pen.strokeStyle = accent || ink;
    taps.flat().forEach(([y, x]) => pen.strokeRect(x * side + 1, y * side + 1, side - 2, side - 2));

    const [brush, size] = draw(
      output, data.output, most.output, (y, x) => y * columns + x <= at,
    );
    brush.lineWidth = 2.5;
    brush.strokeStyle = accent || ink;
    brush.strokeRect(column * size + 1, row * size + 1, size - 2, size - 2);

    fill(find(".patch"), patch, most.input, inside);
    fill(find(".kernel"), kernel, most.kernel);
    fill(find(".products"), products, largest(products));
    const parts = [`Σ of the products ${number(sum)}`];
    if (data.others) parts.push(`the other ${data.others} inputs ${number(others)}`);
    if (data.bias !== null) parts.push(`bias ${number(data.bias)}`);
    says.textContent = `row ${row}, column ${column}: ${parts.join(" + ")} = ${number(whole)}`;
    slider.max = steps - 1;
    slider.value = at;
    play.textContent = running ? "❚❚ Pause" : "▶ Play";
  };

  const stop = () => {
    clearInterval(timers.get(root));
    running = false;
  };
  const move = (by) => {
    at = Math.min(steps - 1, Math.max(0, at + by));
    show();
  };
  const go = () => {
    clearInterval(timers.get(root));
    timers.set(
      root,
      setInterval(() => {
        if (!root.isConnected || at === steps - 1) stop();
        else at += 1;
        show();
      }, 1000 / Number(speed.value)),
    );
  };

  play.onclick = () => {
    if (running) stop();
    else {
      running = true;
      if (at === steps - 1) at = 0;
      go();
    }
    show();
  };
  find(".back").onclick = () => { stop(); move(-1); };
  find(".forth").onclick = () => { stop(); move(1); };
  slider.oninput = () => { stop(); at = Number(slider.value); show(); };
  speed.oninput = () => { if (running) go(); };
  // Who wants no motion gets the steps alone.
  play.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
  speed.parentElement.hidden = play.hidden;

  find(".input-says").textContent = data.says.input;
  find(".output-says").textContent = data.says.output;
  input.setAttribute("role", "img");
  output.setAttribute("role", "img");
  input.setAttribute("aria-label", data.says.input);
  output.setAttribute("aria-label", data.says.output);
  slider.setAttribute("aria-label", "Step of the walk");
  show();
}
