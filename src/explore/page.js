// The explorer's page: asks the module for figures and draws them. No number is computed here.
"use strict";
const $ = id => document.getElementById(id);
const TEXTS = {
  en: {subtitle: "positional encodings to play with", theme: "Light / dark", encoding: "Encoding", second: "beside it",
       none: "nothing", settings: "Settings", formula: "Formula", words: "A sentence", causal: "no keys in the future",
       footer: "Every number comes from libposenc, compiled to WebAssembly in this page: the same as posenc plot -o F.csv. Nothing is sent anywhere.",
       length: "Positions L", dim: "Width d", heads: "Heads", base: "Base", rows: "Rows", cols: "Columns", shift: "Shift by n",
       draws: "Draws", head: "Head", seed: "Seed", twice: "Twice as long", products: "dot products", counter: "binary counter", time: "computed and drawn in",
       shifted: "Shifted by {n}: the largest change of a weight is {x}.", relative: "Nothing depends on where the sentence stands.",
       absolute: "Where the sentence stands matters.", value: "value", row: "row", column: "column", picture: "Picture of", sentence: "sentence",
       input: "input: added to the embeddings", rotary: "rotary: rotates queries and keys", score: "score: added to the scores", weight: "weight: changes the weights",
       default: "default", heatmap: "heat map", curves: "curves", similarity: "similarity", similarity2d: "similarity, 2-D", onehot: "one-hot", hierarchy: "hierarchy",
       decay: "decay", mass: "attention mass", pair: "turning pair", wavelengths: "wavelengths", bias: "bias", buckets: "buckets", factors: "factors", words_kind: "words"},
  zh: {subtitle: "可以动手玩的位置编码", theme: "浅色 / 深色", encoding: "编码", second: "对照",
       none: "无", settings: "设置", formula: "公式", words: "一个句子", causal: "不看未来的键",
       footer: "每个数字都由编译成 WebAssembly、内嵌在本页中的 libposenc 算出，与 posenc plot -o F.csv 相同。本页不发送任何数据。",
       length: "位置数 L", dim: "宽度 d", heads: "头数", base: "底数", rows: "行", cols: "列", shift: "平移 n",
       draws: "抽样次数", head: "头", seed: "种子", twice: "长度加倍", products: "点积", counter: "二进制计数器", time: "计算并绘制用时",
       shifted: "平移 {n}：权重的最大变化为 {x}。", relative: "与句子所在的位置无关。",
       absolute: "句子所在的位置有影响。", value: "值", row: "行", column: "列", picture: "图：", sentence: "句子",
       input: "输入：加到词嵌入上", rotary: "旋转：旋转查询和键", score: "分数：加到注意力分数上", weight: "权重：改变注意力权重",
       default: "默认", heatmap: "热图", curves: "曲线", similarity: "相似度", similarity2d: "二维相似度", onehot: "独热", hierarchy: "层次",
       decay: "衰减", mass: "注意力质量", pair: "旋转的一对", wavelengths: "波长", bias: "偏置", buckets: "分桶", factors: "因子", words_kind: "词"},
};
const SENTENCE = "the cat sat on the mat and the dog sat too";

/* ---- the module ---- */
let module, registry;
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const encoder = new TextEncoder(), decoder = new TextDecoder();

async function load() {
  const words = n => new DataView(module.memory.buffer).setUint32(n, 0, true);
  const wasi = {environ_sizes_get: (a, b) => (words(a), words(b), 0), environ_get: () => 0, fd_close: () => 8, fd_seek: () => 8,
                fd_write: () => 8, fd_fdstat_get: () => 8, proc_exit: () => { throw new Error("the module stopped"); }};
  module = (await WebAssembly.instantiate(bytes(MODULE), {wasi_snapshot_preview1: wasi})).instance.exports;
  module._initialize();
}

function text(at) {
  const all = new Uint8Array(module.memory.buffer);
  return at ? decoder.decode(all.subarray(at, all.indexOf(0, at))) : "";
}

function ask(name, request) {
  const sent = encoder.encode(Object.entries(request).map(([k, v]) => `${k}=${v}\n`).join("") + "\0");
  const at = module.explore_memory(sent.length);
  new Uint8Array(module.memory.buffer).set(sent, at);
  const answer = text(module[name](at));
  module.explore_free(at);
  return answer ? JSON.parse(answer) : {error: "the module has no memory left"};
}

const numbers = a => new Float64Array(module.memory.buffer, a.at, a.n);

/* ---- what is chosen ---- */
const state = {spec: "sinusoidal", second: "", kind: "", length: 0, dim: 0, heads: 0, rows: 0, cols: 0, seed: 1, draws: 20, shift: 0, head: 0,
               products: 0, counter: 0, words: SENTENCE, causal: 1, lang: "en"};
let offers = {kinds: []}, shown = null;
const t = name => TEXTS[state.lang][name] ?? name;

const nameOf = spec => spec.split(/[[+]/)[0];
const find = name => registry.encodings.find(e => e.name === name.toLowerCase());

function settingsOf(spec) {
  const inside = /\[(.*)\]/.exec(spec), found = {};
  for (const one of inside ? inside[1].split(":") : []) {
    const at = one.indexOf("=");
    if (at > 0) found[one.slice(0, at)] = one.slice(at + 1);
  }
  return found;
}

function specOf(name, settings) {
  const all = Object.entries(settings).filter(([, v]) => v !== "");
  return name + (all.length ? `[${all.map(([k, v]) => `${k}=${v}`).join(":")}]` : "");
}

function setSetting(name, value) {
  const settings = settingsOf(state.spec);
  if (value === "") delete settings[name]; else settings[name] = value;
  choose(specOf(nameOf(state.spec), settings));
}

/* ---- the address keeps it ---- */
const KEPT = ["second", "kind", "length", "dim", "heads", "rows", "cols", "seed", "draws", "shift", "head", "products", "counter", "words", "causal", "lang"];
const usual = {...state};
function remember() {
  const parts = [encodeURIComponent(state.spec), ...KEPT.filter(k => state[k] !== usual[k] && state[k] !== 0).map(k => `${k}=${encodeURIComponent(state[k])}`)];
  history.replaceState(null, "", "#" + parts.join("&"));
}
function recall() {
  const [spec, ...rest] = location.hash.slice(1).split("&");
  const start = START.split(" ").filter(Boolean);
  if (start.length) state.spec = start[0], state.second = start[1] ?? "";
  if (spec) state.spec = decodeURIComponent(spec), state.second = "";
  for (const part of rest) {
    const [k, v] = part.split("=").map(decodeURIComponent);
    if (KEPT.includes(k)) state[k] = typeof usual[k] === "number" ? Number(v) : v;
  }
}

/* ---- controls ---- */
function option(select, value, label, parent) {
  const o = document.createElement("option");
  o.value = value; o.textContent = label;
  (parent ?? select).append(o);
}

function fillEncodings() {
  for (const [id, first] of [["encoding", null], ["second", t("none")]]) {
    const select = $(id), chosen = nameOf(id === "second" ? state.second : state.spec);
    select.textContent = "";
    if (first !== null) option(select, "", first);
    for (const place of ["input", "rotary", "score", "weight"]) {
      const group = document.createElement("optgroup");
      group.label = t(place);
      for (const e of registry.encodings)
        if (e.place === place) option(select, e.name, `${e.name}: ${e.title}`, group);
      select.append(group);
    }
    select.value = chosen;
  }
}

function slider(name, low, high, value, set, logarithmic) {
  const row = document.createElement("label"), label = document.createElement("span"), range = document.createElement("input"), box = document.createElement("input");
  row.className = "slider"; label.textContent = t(name);
  range.type = "range"; box.type = "number"; range.dataset.name = name;
  const to = v => logarithmic ? Math.log2(v) : v, from = v => logarithmic ? Math.round(2 ** v) : Number(v);
  range.min = to(low); range.max = to(high); range.step = logarithmic ? 0.01 : 1; range.value = to(value);
  range.setAttribute("aria-label", t(name)); range.setAttribute("aria-valuetext", value);
  box.min = low; box.max = high; box.step = "any"; box.value = value; box.setAttribute("aria-label", t(name));
  range.oninput = () => { box.value = from(range.value); range.setAttribute("aria-valuetext", box.value); set(from(range.value)); };
  box.onchange = () => { range.value = to(box.value); set(Number(box.value)); };
  row.append(label, range, box);
  $("sizes").append(row);
}

function check(name) {
  const row = document.createElement("label"), box = document.createElement("input"), label = document.createElement("span");
  box.type = "checkbox"; box.checked = !!state[name]; label.textContent = t(name);
  box.onchange = () => { state[name] = Number(box.checked); later(); };
  row.append(box, label);
  $("sizes").append(row);
}

function fillSizes() {
  $("sizes").textContent = "";
  const kind = state.kind, offer = offers.kinds.find(k => k.kind === kind), e = find(nameOf(state.spec));
  const set = name => v => { state[name] = v; later(); };
  const number = (name, low, high, usual, logarithmic) => slider(name, low, high, state[name] || usual, set(name), logarithmic);
  if (kind === "sentence") {
    number("shift", 0, 4096, 0);
    number("dim", 4, 128, 64);
    number("heads", 1, 16, 1);
    if ((state.heads || 1) > 1) number("head", 1, state.heads, 1);
    number("seed", 1, 99, 1);
  } else if (offer) {
    if (offer.grid) number("rows", 2, 32, offer.place === "score" ? 7 : 16), number("cols", 2, 32, offer.place === "score" ? 7 : 32);
    else if (kind !== "words") number("length", 2, kind === "wavelengths" ? 1 << 20 : 1024, usualLength(offer), kind === "wavelengths");
    if (!["buckets"].includes(kind)) number("dim", 2, 256, offer.dim);
    if (["bias", "mass", "factors"].includes(kind) && offer.place !== "rotary") number("heads", 1, 16, 8);
    if (["decay", "mass"].includes(kind) && offer.place === "rotary") number("draws", 1, 200, 20);
    if (kind.startsWith("similarity") && offer.place === "input") check("products");
    if (kind === "heatmap" && !offer.grid) check("counter");
    if (["decay", "mass", "bias", "factors", "heatmap", "curves"].includes(kind)) number("seed", 1, 99, 1);
    if (!offer.grid && kind !== "words") {
      const twice = document.createElement("button");
      twice.type = "button"; twice.textContent = t("twice");
      twice.onclick = () => { state.length = 2 * (state.length || usualLength(offer)); fillSizes(); later(); };
      $("sizes").append(twice);
    }
  }
  if (e && e.settings.some(s => s.name === "base"))
    slider("base", 2, 1e7, Number(settingsOf(state.spec).base ?? e.settings.find(s => s.name === "base").default) || 10000,
           v => { const all = settingsOf(state.spec); all.base = v; state.spec = specOf(nameOf(state.spec), all); $("spec").value = state.spec; later(); }, true);
}

/* Pictures that draw many vectors are shorter here than those of the tool. */
const usualLength = offer => ["decay", "mass"].includes(offer.kind) ? 256 : offer.length;

function fillSettings() {
  const e = find(nameOf(state.spec)), set = settingsOf(state.spec);
  $("settings").textContent = "";
  if (!e) return;
  for (const s of e.settings) {
    const row = document.createElement("label"), name = document.createElement("span"), hint = document.createElement("small");
    const words = s.range && s.range.includes("|") ? s.range.split("|") : null, field = document.createElement(words ? "select" : "input");
    row.className = "setting"; name.textContent = s.name + (s.range && !words ? `  (${s.type}, ${s.range})` : `  (${s.type})`);
    if (words) {
      option(field, "", `${t("default")}${s.default ? ": " + s.default : ""}`);
      words.forEach(w => option(field, w, w));
    } else field.placeholder = s.default ?? "";
    field.value = set[s.name] ?? "";
    field.onchange = () => setSetting(s.name, field.value.trim());
    hint.textContent = s.meaning;
    row.append(name, field, hint);
    $("settings").append(row);
  }
}

function fillKinds() {
  const kinds = [...offers.kinds.map(k => k.kind).filter((k, i, all) => all.indexOf(k) === i), "sentence"];
  if (!kinds.includes(state.kind)) state.kind = kinds[0], state.length = state.dim = state.rows = state.cols = 0;
  $("kinds").textContent = "";
  for (const kind of kinds) {
    const b = document.createElement("button");
    b.type = "button"; b.role = "tab"; b.textContent = kind === "words" ? t("words_kind") : t(kind); b.dataset.kind = kind;
    b.setAttribute("aria-selected", kind === state.kind);
    b.onclick = () => { state.kind = kind; state.length = state.dim = state.heads = state.rows = state.cols = 0; fillKinds(); fillSizes(); later(); $("kinds").querySelector('[aria-selected="true"]').focus(); };
    $("kinds").append(b);
  }
  $("sentence").hidden = !["sentence", "words"].includes(state.kind);
}

function problem(sentence) {
  $("problem").hidden = !sentence;
  $("problem").textContent = sentence ?? "";
}

function choose(spec) {
  const answer = ask("explore_offers", {spec});
  $("spec").value = state.spec = spec;
  if (answer.error) { problem(answer.error); return; }
  offers = answer;
  const e = find(nameOf(spec));
  $("encoding").value = nameOf(spec).toLowerCase();
  $("about").textContent = e ? [e.title, e.models, e.beyond].filter(Boolean).join(". ") : "";
  $("formula").textContent = e ? [e.formula, e.symbols].filter(Boolean).join("\n\n") : "";
  fillKinds(); fillSizes(); fillSettings(); later();
}

function translate() {
  document.documentElement.lang = state.lang;
  for (const e of document.querySelectorAll("[data-t]")) e.textContent = t(e.dataset.t);
  $("language").textContent = state.lang === "en" ? "中文" : "English";
  $("language").lang = state.lang === "en" ? "zh" : "en";
}

/* ---- drawing: one SVG, from figures as the module gives them ---- */
const esc = s => String(s ?? "").replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
const short = x => x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(2) : String(Number(x.toPrecision(4)));
const cells = [], plots = []; // where the pointer can read numbers

function ticks(low, high, most, log) {
  const found = [];
  if (!(high > low)) return [low];
  if (log) {
    for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p++) found.push(10 ** p);
    const every = Math.ceil(found.length / most);
    return found.filter((_, i) => i % every === 0);
  }
  const rough = (high - low) / most, ten = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(m => m * ten).find(s => s >= rough * 0.999);
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) found.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return found;
}

function colours(signed) {
  const stops = registry.scales[signed ? 1 : 0], table = new Uint32Array(257);
  for (let i = 0; i < 256; i++) {
    const x = i / 255 * (stops.length - 1), k = Math.min(Math.floor(x), stops.length - 2), f = x - k;
    const [r, g, b] = [0, 1, 2].map(c => Math.round(stops[k][c] * (1 - f) + stops[k + 1][c] * f));
    table[i] = 0xff000000 | b << 16 | g << 8 | r;
  }
  table[256] = 0xff999999 | 0;
  return table;
}

function image(values, rows, cols, low, high, table) {
  const canvas = document.createElement("canvas"), at = canvas.getContext("2d"), data = at.createImageData(canvas.width = cols, canvas.height = rows);
  const pixels = new Uint32Array(data.data.buffer), scale = 255 / (high - low);
  for (let i = 0; i < values.length; i++) {
    const x = (values[i] - low) * scale;
    pixels[i] = x !== x ? table[256] : table[x < 0 ? 0 : x > 255 ? 255 : x + 0.5 | 0];
  }
  at.putImageData(data, 0, 0);
  return canvas.toDataURL();
}

const fit = (s, width) => s.length * 6.9 > width ? `textLength="${Math.floor(width)}" lengthAdjust="spacingAndGlyphs"` : "";
const label = (x, y, s, more = "") => `<text x="${x}" y="${y}" ${more}>${esc(s)}</text>`;

function lines(s, width) { // a title in lines that fit
  const out = [];
  for (const part of String(s ?? "").split("\n")) {
    let line = "";
    for (const word of part.split(" ")) {
      if (line && (line.length + word.length + 1) * 8.4 > width) out.push(line), line = "";
      line += (line ? " " : "") + word;
    }
    out.push(line);
  }
  return out.filter(Boolean);
}

function grid(f, x, y, w, h) {
  const names = f.row_names ? Math.min(90, 12 + 6.5 * Math.max(...f.row_names.map(n => n.length))) : 0;
  const left = Math.max(f.y_label ? 62 : 46, names + (f.y_label ? 18 : 0)), bar = 74 + (f.second ? 58 : 0), under = f.x_label ? 44 : 26;
  let iw = w - left - bar, ih = h - under - 8;
  if (f.square) { const c = Math.min(iw / f.cols, ih / f.rows); iw = c * f.cols; ih = c * f.rows; }
  const x0 = x + left, y0 = y + 6, values = numbers(f.values), table = colours(f.signed), cw = iw / f.cols, ch = ih / f.rows;
  let s = `<image x="${x0}" y="${y0}" width="${iw}" height="${ih}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${image(values, f.rows, f.cols, f.low, f.high, table)}"/>`;
  s += `<rect x="${x0}" y="${y0}" width="${iw}" height="${ih}" class="frame"/>`;
  if (f.col_names) {
    const every = Math.ceil(26 / cw), tilt = cw < 40;
    f.col_names.forEach((n, i) => { if (i % every === 0) s += tilt ? label(0, 0, n.slice(0, 9), `class="tick" text-anchor="end" transform="translate(${x0 + (i + .5) * cw + 4},${y0 + ih + 12}) rotate(-40)"`) : label(x0 + (i + .5) * cw, y0 + ih + 15, n, 'class="tick" text-anchor="middle"'); });
  } else for (const v of ticks(f.x0, f.x0 + f.dx * (f.cols - 1), Math.max(2, iw / 80)))
    s += label(x0 + ((v - f.x0) / f.dx + .5) * cw, y0 + ih + 15, short(v), 'class="tick" text-anchor="middle"');
  if (f.row_names) {
    const every = Math.ceil(13 / ch);
    f.row_names.forEach((n, i) => { if (i % every === 0) s += label(x0 - 5, y0 + (i + .5) * ch + 4, n.slice(0, 12), 'class="tick" text-anchor="end"'); });
  } else for (const v of ticks(Math.min(f.y0, f.y0 + f.dy * (f.rows - 1)), Math.max(f.y0, f.y0 + f.dy * (f.rows - 1)), Math.max(2, ih / 40)))
    s += label(x0 - 5, y0 + ((v - f.y0) / f.dy + .5) * ch + 4, short(v), 'class="tick" text-anchor="end"');
  for (const [v, n] of f.ticks) s += label(x0 + iw + 5, y0 + ((v - f.y0) / f.dy + .5) * ch + 4, n, 'class="tick"');
  for (const [px, py] of f.points) s += label(x0 + ((px - f.x0) / f.dx + .5) * cw, y0 + ((py - f.y0) / f.dy + .5) * ch + 4, "+", 'class="point" text-anchor="middle"');
  if (f.x_label) s += label(x0 + iw / 2, y0 + ih + (f.col_names && cw < 40 ? 42 : 34), f.x_label, `text-anchor="middle" ${fit(f.x_label, iw + 60)}`);
  if (f.y_label) s += label(0, 0, f.y_label, `text-anchor="middle" transform="translate(${x + 13},${y0 + ih / 2}) rotate(-90)"`);
  if (f.decimals >= 0 && cw >= 24 && ch >= 12)
    values.forEach((v, i) => { const dark = f.signed ? Math.abs(v) < .6 * f.high : v > (f.low + f.high) / 2; if (v === v) s += label(x0 + (i % f.cols + .5) * cw, y0 + (Math.floor(i / f.cols) + .5) * ch + 4, v.toFixed(f.decimals), `class="tick" text-anchor="middle" style="fill:${dark ? "#000" : "#fff"}"`); });
  if (f.second) s += label(0, 0, f.second, `class="tick" text-anchor="middle" transform="translate(${x0 + iw + 57},${y0 + ih / 2}) rotate(-90)"`);
  const bx = x0 + iw + 12 + (f.second ? 58 : 0), steps = 32;
  for (let i = 0; i < steps; i++) {
    const c = table[Math.round((steps - 1 - i) / (steps - 1) * 255)];
    s += `<rect x="${bx}" y="${y0 + i * ih / steps}" width="12" height="${ih / steps + .6}" fill="rgb(${c & 255},${c >> 8 & 255},${c >> 16 & 255})"/>`;
  }
  for (const v of ticks(f.low, f.high, Math.max(2, Math.min(6, ih / 40)))) s += label(bx + 16, y0 + (1 - (v - f.low) / (f.high - f.low)) * ih + 4, short(v), 'class="tick"');
  cells.push({f, x: x0, y: y0, w: iw, h: ih});
  return s;
}

function extent(f) {
  let [xl, xh, yl, yh] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const c of f.curves) {
    const y = [c.y, c.low, c.high].filter(Boolean);
    for (const v of numbers(c.x)) if (v === v) xl = Math.min(xl, v), xh = Math.max(xh, v);
    for (const a of y) for (const v of numbers(a)) if (Number.isFinite(v) && (!f.log_y || v > 0)) yl = Math.min(yl, v), yh = Math.max(yh, v);
  }
  if (f.kind === "arrows") { const m = 1.08 * Math.max(...[xl, xh, yl, yh].map(Math.abs)); return [-m, m, -m, m]; }
  if (f.high > f.low) [yl, yh] = [f.low, f.high];
  else if (!f.log_y) { const pad = (yh - yl || Math.abs(yh) || 1) * .05; yl -= pad; yh += pad; }
  return [xl, xh, yl, yh];
}

function curves(f, x, y, w, h) {
  const arrows = f.kind === "arrows", named = f.curves.filter(c => c.name), left = 66, under = 44, right = 12;
  const key = named.length > 1 || (named.length && arrows) ? Math.ceil(named.length / Math.max(1, Math.floor((w - left) / 170))) * 17 + 4 : 0;
  let iw = w - left - right, ih = h - under - key - 8;
  if (arrows) iw = ih = Math.min(iw, ih);
  const x0 = x + left, y0 = y + 6, [xl, xh, yl, yh] = extent(f);
  const sx = f.log_x ? v => x0 + Math.log(v / xl) / Math.log(xh / xl) * iw : v => x0 + (v - xl) / (xh - xl) * iw;
  const sy = f.log_y ? v => y0 + ih - Math.log(v / yl) / Math.log(yh / yl) * ih : v => y0 + ih - (v - yl) / (yh - yl) * ih;
  let s = "";
  for (const v of ticks(xl, xh, Math.max(2, iw / 80), f.log_x)) s += `<path class="rule" d="M${sx(v)} ${y0}v${ih}"/>` + label(sx(v), y0 + ih + 15, short(v), 'class="tick" text-anchor="middle"');
  for (const v of ticks(yl, yh, Math.max(2, ih / 45), f.log_y)) s += `<path class="rule" d="M${x0} ${sy(v)}h${iw}"/>` + label(x0 - 5, sy(v) + 4, short(v), 'class="tick" text-anchor="end"');
  s += `<rect x="${x0}" y="${y0}" width="${iw}" height="${ih}" class="frame"/>`;
  const clip = `clip${plots.length}`;
  s += `<clipPath id="${clip}"><rect x="${x0}" y="${y0}" width="${iw}" height="${ih}"/></clipPath><g clip-path="url(#${clip})">`;
  const dashes = ["", "7 3", "2 3", "9 3 2 3", "4 4"];
  f.curves.forEach((c, i) => {
    const cx = numbers(c.x), cy = numbers(c.y), dash = f.ordered ? "" : dashes[i % dashes.length], ink = `stroke="${c.style === 2 ? "#999" : c.colour}"`;
    if (arrows) {
      s += `<g class="turn" style="animation-delay:${-4 + 4 * i / f.curves.length}s"><path fill="none" ${ink} stroke-width="2" d="M${sx(0)} ${sy(0)}L${sx(cx[0])} ${sy(cy[0])}"/><circle cx="${sx(cx[0])}" cy="${sy(cy[0])}" r="4" fill="${c.colour}"/></g>`;
      return;
    }
    const path = a => { let d = "", pen = 0, last = 0; for (let k = 0; k < cx.length; k++) { const v = a[k]; if (!Number.isFinite(v) || (f.log_y && v <= 0) || (f.log_x && cx[k] <= 0)) { pen = 0; continue; } const px = sx(cx[k]).toFixed(1), py = sy(v).toFixed(1); d += pen ? f.steps ? `H${((+px + last) / 2).toFixed(1)}V${py}H${px}` : `L${px} ${py}` : `M${px} ${py}`; pen = 1; last = +px; } return d; };
    if (c.low && c.high) { const lo = numbers(c.low), hi = numbers(c.high); let d = ""; for (let k = 0; k < cx.length; k++) d += `${k ? "L" : "M"}${sx(cx[k]).toFixed(1)} ${sy(hi[k]).toFixed(1)}`; for (let k = cx.length - 1; k >= 0; k--) d += `L${sx(cx[k]).toFixed(1)} ${sy(lo[k]).toFixed(1)}`; s += `<path d="${d}Z" fill="${c.colour}" opacity=".18"/>`; }
    if (c.style === 1) for (let k = 0; k < cx.length; k++) { if (Number.isFinite(cy[k]) && (!f.log_y || cy[k] > 0)) s += `<circle cx="${sx(cx[k]).toFixed(1)}" cy="${sy(cy[k]).toFixed(1)}" r="2.6" fill="${c.colour}"/>`; }
    else s += `<path fill="none" ${ink} stroke-width="1.7" stroke-dasharray="${dash}" d="${path(cy)}"/>`;
  });
  for (const [v, n] of f.marks) s += `<path d="M${sx(v)} ${y0}v${ih}" stroke="#999" stroke-dasharray="3 3"/>` + label(sx(v) + 4, y0 + 12, n, 'class="tick"');
  s += "</g>";
  if (f.x_label) s += label(x0 + iw / 2, y0 + ih + 34, f.x_label, `text-anchor="middle" ${fit(f.x_label, iw + 20)}`);
  if (f.y_label) s += label(0, 0, f.y_label, `text-anchor="middle" transform="translate(${x + 13},${y0 + ih / 2}) rotate(-90)"`);
  if (key) {
    const across = Math.max(1, Math.floor((w - left) / 170));
    named.forEach((c, i) => { const kx = x0 + i % across * 170, ky = y0 + ih + 54 + Math.floor(i / across) * 17, dash = f.ordered ? "" : dashes[f.curves.indexOf(c) % dashes.length]; s += `<path d="M${kx} ${ky - 4}h22" stroke="${c.style === 2 ? "#999" : c.colour}" stroke-width="2" stroke-dasharray="${dash}"/>` + label(kx + 27, ky, c.name.length > 22 ? c.name.slice(0, 21) + "…" : c.name, 'class="tick"'); });
  }
  plots.push({f, x: x0, y: y0, w: iw, h: ih, sx, xl, xh});
  return s;
}

function draw(f) {
  cells.length = plots.length = 0;
  const width = Math.max(330, Math.min(1080, $("figure").clientWidth || 1080)), panels = f.kind === "panels" ? f.panels : [f];
  const most = Math.max(1, Math.floor(width / 380)), columns = Math.min(most, f.columns || (panels.length < 4 ? panels.length : panels.length === 4 ? 2 : 3)), pw = width / columns;
  const head = lines(f.title, width);
  let y = 14 + head.length * 19, s = head.map((l, i) => label(width / 2, 20 + i * 19, l, 'class="title" text-anchor="middle"')).join("");
  const heights = [];
  panels.forEach((p, i) => {
    const row = Math.floor(i / columns), own = f.kind === "panels" ? lines(p.title, pw - 20).length * 17 + 6 : 0, names = p.kind !== "grid" ? (p.curves ?? []).filter(c => c.name).length : 0;
    let high = p.kind === "grid" && p.square ? Math.min(640, (pw - 130) * p.rows / p.cols + 60) : Math.min(480, Math.max(230, pw * .56));
    if (p.kind === "arrows") high = Math.min(520, pw * .8);
    if (names > 1) high += Math.ceil(names / Math.max(1, Math.floor((pw - 66) / 170))) * 17;
    heights[row] = Math.max(heights[row] ?? 0, high + own);
  });
  panels.forEach((p, i) => {
    const row = Math.floor(i / columns), top = y + heights.slice(0, row).reduce((a, b) => a + b, 0), own = f.kind === "panels" ? lines(p.title, pw - 20) : [];
    s += own.map((l, k) => label(i % columns * pw + pw / 2, top + 14 + k * 17, l, 'text-anchor="middle"')).join("");
    const under = own.length * 17 + (own.length ? 6 : 0);
    s += (p.kind === "grid" ? grid : curves)(p, i % columns * pw, top + under, pw, heights[row] - under);
  });
  const high = y + heights.reduce((a, b) => a + b, 0) + 8, dark = document.documentElement.dataset.theme === "dark";
  const style = `text{font:13px system-ui,"Noto Sans","Noto Sans CJK SC",sans-serif;fill:${dark ? "#e6eaf0" : "#1c2430"}}.tick{font-size:11.5px}.title{font-size:15px;font-weight:600}.frame{fill:none;stroke:${dark ? "#7b8796" : "#5b6675"}}.rule{stroke:${dark ? "#2b333e" : "#e4e8ee"};fill:none}.point{font-size:18px;fill:#e00}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${high}" width="${width}" height="${high}" role="img" aria-label="${esc(t("picture") + " " + f.title)}"><style>${style}</style><rect width="100%" height="100%" fill="${dark ? "#12161c" : "#fff"}"/>${s}</svg>`;
}

/* ---- numbers under the pointer, or by the arrow keys ---- */
function readAt(px, py) {
  for (const c of cells)
    if (px >= c.x && px < c.x + c.w && py >= c.y && py < c.y + c.h) {
      const col = Math.floor((px - c.x) / c.w * c.f.cols), row = Math.floor((py - c.y) / c.h * c.f.rows);
      const name = (names, k, from, step) => names ? names[k] : short(from + step * k);
      return `${c.f.y_label || t("row")}: ${name(c.f.row_names, row, c.f.y0, c.f.dy)}; ${c.f.x_label || t("column")}: ${name(c.f.col_names, col, c.f.x0, c.f.dx)}; ${c.f.value_label || t("value")}: ${numbers(c.f.values)[row * c.f.cols + col]}`;
    }
  for (const p of plots)
    if (px >= p.x && px < p.x + p.w && py >= p.y && py < p.y + p.h) {
      const said = [];
      let at = null;
      for (const c of p.f.curves) {
        const x = numbers(c.x), y = numbers(c.y);
        let best = 0;
        for (let k = 1; k < x.length; k++) if (Math.abs(p.sx(x[k]) - px) < Math.abs(p.sx(x[best]) - px)) best = k;
        at ??= x[best];
        if (said.length < 8) said.push(`${c.name ? c.name + ": " : ""}${short(y[best])}`);
      }
      return `${p.f.x_label ?? "x"}: ${short(at)}; ${said.join("; ")}`;
    }
  return "";
}
const pointer = {x: 0, y: 0};
function read(px, py) { pointer.x = px; pointer.y = py; $("readout").textContent = readAt(px, py); }
function onPointer(e) {
  const svg = $("figure").firstElementChild;
  if (!svg) return;
  const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
  read((e.clientX - box.left) * scale, (e.clientY - box.top) * scale);
}
function onKey(e) {
  const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[e.key], area = cells[0] ?? plots[0];
  if (!step || !area) return;
  e.preventDefault();
  const dx = area.w / (area.f.cols ?? 60), dy = area.h / (area.f.rows ?? 60), inside = (v, from, size, d) => Math.min(from + size - d / 2, Math.max(from + d / 2, v));
  read(inside(pointer.x + step[0] * dx, area.x, area.w, dx), inside(pointer.y + step[1] * dy, area.y, area.h, dy));
}

/* ---- asking and showing ---- */
function requestOf() {
  const r = {spec: state.spec, kind: state.kind, seed: state.seed}, offer = offers.kinds.find(k => k.kind === state.kind);
  for (const k of ["length", "dim", "heads", "rows", "cols"]) if (state[k]) r[k] = state[k];
  if (state.second) r.spec2 = state.second;
  if (offer && ["decay", "mass"].includes(state.kind)) { r.length = state.length || usualLength(offer); if (offer.place === "rotary") r.draws = state.draws; }
  if (state.products) r.products = 1;
  if (state.counter) r.counter = 1;
  if (state.kind === "words") r.words = state.words;
  return r;
}

function attend(shift) {
  return ask("explore_attend", {spec: state.spec, words: state.words, causal: state.causal, dim: state.dim || 64, heads: state.heads || 1, head: Math.min(state.head || 1, state.heads || 1) - 1, seed: state.seed, shift});
}

function show() {
  const begun = performance.now();
  $("changed").textContent = "";
  let f;
  if (state.kind === "sentence") {
    let before = null;
    if (state.shift) { const a = attend(0); if (!a.error) before = Float64Array.from(numbers(a.panels[1].values)); }
    f = attend(state.shift);
    if (!f.error && before) {
      const change = numbers(f.panels[1].values).reduce((most, v, i) => Math.max(most, Math.abs(v - before[i])), 0);
      $("changed").textContent = t("shifted").replace("{n}", state.shift).replace("{x}", short(change)) + " " + t(change < 1e-9 ? "relative" : "absolute");
    }
  } else f = ask("explore_picture", requestOf());
  remember();
  problem(f.error);
  if (f.error) return;
  shown = f;
  $("figure").innerHTML = draw(f);
  if (pointer.x) $("readout").textContent = readAt(pointer.x, pointer.y);
  state.took = performance.now() - begun;
  $("time").textContent = `${t("time")} ${state.took.toFixed(0)} ms`;
}

let waiting = 0;
function later() { if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; show(); }); }

function save(what) {
  const name = `posenc-${nameOf(state.spec)}-${state.kind}.${what}`, svg = $("figure").innerHTML;
  const give = blob => { const a = document.createElement("a"); a.href = URL.createObjectURL(blob); a.download = name; a.click(); setTimeout(() => URL.revokeObjectURL(a.href), 1000); };
  if (what === "csv") return give(new Blob([text(module.explore_csv())], {type: "text/csv"}));
  if (what === "svg") return give(new Blob([svg], {type: "image/svg+xml"}));
  const picture = new Image(), box = $("figure").firstElementChild.viewBox.baseVal;
  picture.onload = () => { const c = document.createElement("canvas"); c.width = 2 * box.width; c.height = 2 * box.height; c.getContext("2d").drawImage(picture, 0, 0, c.width, c.height); c.toBlob(give); };
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
}

async function begin() {
  await load();
  registry = JSON.parse(text(module.explore_registry()));
  recall();
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  translate(); fillEncodings();
  $("words").value = state.words; $("causal").checked = !!state.causal;
  $("encoding").onchange = e => choose(e.target.value);
  $("second").onchange = e => { state.second = e.target.value; later(); };
  $("spec").onchange = e => choose(e.target.value.trim());
  $("controls").onsubmit = e => e.preventDefault();
  $("words").oninput = e => { state.words = e.target.value; later(); };
  $("causal").onchange = e => { state.causal = Number(e.target.checked); later(); };
  $("language").onclick = () => { state.lang = state.lang === "en" ? "zh" : "en"; translate(); fillEncodings(); choose(state.spec); };
  $("theme").onclick = () => { const root = document.documentElement; root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; show(); };
  $("figure").onpointermove = onPointer; $("figure").onkeydown = onKey;
  for (const b of document.querySelectorAll("[data-save]")) b.onclick = () => save(b.dataset.save);
  addEventListener("hashchange", () => { recall(); choose(state.spec); });
  addEventListener("resize", later);
  choose(state.spec);
}
begin().catch(e => problem(String(e)));
