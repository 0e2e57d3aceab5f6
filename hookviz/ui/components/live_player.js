// What stops and moves a video, and the choice among several cameras.

import { inSigns, say } from "../../explorer/client/shared.js";

export const playerBar = (find, current) => {
  const scrub = find(".scrub");
  const show = () => {
    const player = current()?.player;
    find(".player").hidden = !player;
    if (!player) return;
    scrub.max = player.length;
    scrub.step = player.unit === "s" ? "any" : 1;
    if (!scrub.matches(":active")) scrub.value = player.at;
    find(".play").textContent = player.paused ? say("Play") : say("Pause");
    const told =
      player.unit === "s"
        ? say("{at} of {length} s", {
            at: inSigns(player.at.toFixed(2)),
            length: inSigns(player.length.toFixed(2)),
          })
        : say("frame {at} of {count}", { at: player.at + 1, count: player.length + 1 });
    find(".at").textContent = told;
    scrub.setAttribute("aria-valuetext", told);
  };
  const on = (act) => async () => {
    const player = current()?.player;
    if (player) await act(player);
    show();
  };
  find(".play").onclick = on((player) => player.toggle());
  find(".back").onclick = on((player) => player.step(-1));
  find(".ahead").onclick = on((player) => player.step(1));
  scrub.oninput = on((player) => player.seek(Number(scrub.value)));
  return show;
};

// ImageChoice where there are several; they have names once one of them was allowed.
export const offerCameras = async (find, device) => {
  const devices = await navigator.mediaDevices.enumerateDevices().catch(() => []);
  const found = devices.filter((each) => each.kind === "videoinput" && each.deviceId);
  find(".cameras").hidden = found.length < 2;
  find(".cameras select").replaceChildren(
    ...found.map(
      ({ deviceId, label }, at) =>
        new Option(label || say("Camera {number}", { number: at + 1 }), deviceId, false, deviceId === device),
    ),
  );
};
