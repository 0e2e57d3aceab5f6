// What the mirror is made of, within the frame of a stream.

export const MIRROR = `
  <canvas class="still" hidden></canvas>
  <div class="lights" aria-hidden="true"><div class="dim"></div><canvas class="glow"></canvas></div>
  <div class="glass" tabindex="0" role="slider" aria-label="Channel" aria-valuemin="0" aria-valuemax="0" aria-valuenow="0">
    <p class="dare"></p>
    <div class="level">
      <div class="meter" role="meter" aria-label="How strongly the channel answers now" aria-valuemin="0" aria-valuenow="0">
        <span class="fill"></span><span class="mark"></span>
      </div>
      <span class="now"></span><span class="record"></span>
    </div>
  </div>
  <div class="desk" role="group" aria-label="Mirror">
    <div class="row">
      <button type="button" class="leave" title="Back to all channels (Escape)">✕ <span>Leave the mirror</span></button>
      <button type="button" class="keep" title="Look at this very frame in the explorer (space bar)">Freeze</button>
    </div>
    <div class="row">
      <button type="button" class="before" aria-label="The channel before" title="The channel before (←)">‹</button>
      <label class="number"><span>Channel</span> <input type="number" min="0" step="1" inputmode="numeric"></label>
      <button type="button" class="after" aria-label="The next channel" title="The next channel (→)">›</button>
      <button type="button" class="surprise" title="One of the channels, by chance">Surprise me</button>
    </div>
    <label class="layer"><span>Layer</span> <select></select></label>
    <label class="measure"><span>Level</span> <select>
      <option value="max">maximum</option><option value="mean">mean</option>
    </select></label>
    <label class="strength"><span>Glow</span> <input type="range" min="0" max="1" step="0.05"></label>
    <div class="row switches">
      <label class="flip"><input type="checkbox"> Mirrored</label>
      <label class="exact"><input type="checkbox"> Exact cells</label>
    </div>
    <label class="share" hidden><input type="checkbox"> Show my camera to the class</label>
    <p class="shared" hidden></p>
    <p class="how"></p>
    <p class="pace"></p>
    <p class="guess"></p>
    <div class="best">
      <h4>Best moments</h4>
      <ol class="moments"></ol>
      <p class="none">They come as the channel lights up. They stay in this tab: nothing of them is sent or stored.</p>
      <div class="row">
        <button type="button" class="save" disabled>Save as a picture</button>
        <button type="button" class="clear" disabled>Clear</button>
      </div>
    </div>
    <p class="told" role="status"></p>
  </div>`;
