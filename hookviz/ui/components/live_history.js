// The strip below the picked channel: its maximum over the last seconds.

import { number, say } from "../../explorer/client/shared.js";
import { sized } from "./live_paint.js";

export const LASTS = 10000; // milliseconds that the strip shows

// The maximum over the last seconds as a line, with what its ends stand for.
export const paintHistory = (canvas, moments, channel, now, wide, high, style) => {
  const pen = sized(canvas, wide, high);
  pen.clearRect(0, 0, wide, high);
  const points = moments.map(({ at, maxima }) => [at, maxima[channel]]).filter(([, value]) => Number.isFinite(value));
  if (!points.length) return null;
  const values = points.map(([, value]) => value);
  let [low, high_] = [Math.min(...values), Math.max(...values)];
  if (high_ - low < 1e-6 * Math.max(1, Math.abs(high_))) [low, high_] = [low - 0.5, high_ + 0.5];
  const [top, bottom] = [14, high - 14];
  const x = (at) => wide - ((now - at) / LASTS) * wide;
  const y = (value) => bottom - ((value - low) / (high_ - low)) * (bottom - top);
  pen.strokeStyle = style.getPropertyValue("--st-border-color") || "#888";
  pen.lineWidth = 1;
  for (const line of [top, bottom]) {
    pen.beginPath();
    pen.moveTo(0, line + 0.5);
    pen.lineTo(wide, line + 0.5);
    pen.stroke();
  }
  pen.beginPath();
  points.forEach(([at, value], index) => pen[index ? "lineTo" : "moveTo"](x(at), y(value)));
  pen.strokeStyle = style.getPropertyValue("--st-primary-color") || "#c33";
  pen.lineWidth = 2;
  pen.lineJoin = "round";
  pen.stroke();
  pen.fillStyle = style.color;
  pen.font = `11px ${style.fontFamily}`;
  pen.textAlign = "left";
  pen.fillText(say("{value} maximum", { value: number(high_) }), 2, 10);
  pen.fillText(number(low), 2, high - 2);
  pen.textAlign = "right";
  pen.fillText(say("last 10 s"), wide - 2, high - 2);
  pen.textAlign = "left";
  return [low, high_];
};
