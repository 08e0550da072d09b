// The explorer's page: asks the module for figures and draws them. No number is computed here.
"use strict";
const $ = id => document.getElementById(id);
const TEXTS = {
  en: {subtitle: "positional encodings to play with", theme: "Light / dark", encoding: "Encoding", second: "beside it",
       none: "nothing", settings: "Settings", formula: "Formula", words: "A sentence", causal: "no keys in the future",
       footer: "Every number comes from libposenc, compiled to WebAssembly in this page: the same as posenc plot -o F.csv. Nothing is sent anywhere.",
       length: "Positions L", dim: "Width d", heads: "Heads", base: "Base", rows: "Rows", cols: "Columns", shift: "Shift by n",
       draws: "Draws", head: "Head", seed: "Seed", twice: "twice as long as the tables were made for", products: "dot products", counter: "binary counter", time: "computed and drawn in",
       shifted: "Shifted by {n}: the largest change of a weight is {x}.", relative: "None of these weights depends on where the sentence stands.",
       absolute: "Where the sentence stands matters.", value: "value", row: "row", column: "column", picture: "Picture of", sentence: "sentence",
       input: "input: added to the embeddings", rotary: "rotary: rotates queries and keys", score: "score: added to the scores", weight: "weight: changes the weights",
       default: "default", common: "settings of every encoding", several: "several, joined by +", pictures: "Pictures", other_spec: "SPEC beside it",
       example: "the cat sat on the mat and the dog sat too", typed: "Type q and k", q: "q of every word, or one for each, separated by ; (empty: drawn)", k: "k of every word, or one for each, separated by ;", tokens: "Token inputs (empty: drawn)", drop: "A model's config.json: drop it anywhere on the page, or choose it", layers: "layers", all: "all", context: "context", look: "Show it", warnings: "Warnings", numbers: "numbers", at_input: "at the input",
       query: "Query", times: "said twice, trained for once", base2: "Base, beside it", chosen: "Chosen", chosen_heatmap: "channels: all", chosen_curves: "channels, e.g. 0 1 2 3",
       chosen_pair: "pairs, e.g. 0 4 8", chosen_similarity2d: "points: row column, row column", heatmap: "heat map", curves: "curves", similarity: "similarity", similarity2d: "similarity, 2-D", onehot: "one-hot", hierarchy: "hierarchy",
       decay: "decay", mass: "attention mass", pair: "turning pair", wavelengths: "wavelengths", bias: "bias", buckets: "buckets", factors: "factors", words_kind: "words"},
  zh: {subtitle: "可以动手玩的位置编码", theme: "浅色 / 深色", encoding: "编码", second: "对照",
       none: "无", settings: "设置", formula: "公式", words: "一个句子", causal: "不看未来的键",
       footer: "每个数字都由编译成 WebAssembly、内嵌在本页中的 libposenc 算出，与 posenc plot -o F.csv 相同。本页不发送任何数据。",
       length: "位置数 L", dim: "宽度 d", heads: "头数", base: "底数", rows: "行", cols: "列", shift: "平移 n",
       draws: "抽样次数", head: "头", seed: "种子", twice: "长度加倍，而表只按原长度制作", products: "点积", counter: "二进制计数器", time: "计算并绘制用时",
       shifted: "平移 {n}：权重的最大变化为 {x}。", relative: "这些权重都与句子所在的位置无关。",
       absolute: "句子所在的位置有影响。", value: "值", row: "行", column: "列", picture: "图：", sentence: "句子",
       input: "输入：加到词嵌入上", rotary: "旋转：旋转查询和键", score: "分数：加到注意力分数上", weight: "权重：改变注意力权重",
       default: "默认", common: "所有编码共有的设置", several: "用 + 连接的几种编码", pictures: "图", other_spec: "对照的 SPEC",
       example: "我 喜欢 猫 猫 也 喜欢 我", typed: "输入 q、k", q: "所有词的 q，或用 ; 分隔每个词各一个（空：随机抽取）", k: "所有词的 k，或用 ; 分隔每个词各一个", tokens: "词元输入（空：随机抽取）", drop: "模型的 config.json：拖到页面任意处，或在此选择", layers: "层", all: "全部", context: "上下文", look: "显示", warnings: "警告", numbers: "个数", at_input: "在输入处",
       query: "查询", times: "说两遍，而只按一遍训练", base2: "对照的底数", chosen: "选择", chosen_heatmap: "通道：全部", chosen_curves: "通道，如 0 1 2 3",
       chosen_pair: "通道对，如 0 4 8", chosen_similarity2d: "点：行 列，行 列", heatmap: "热图", curves: "曲线", similarity: "相似度", similarity2d: "二维相似度", onehot: "独热", hierarchy: "层次",
       decay: "衰减", mass: "注意力质量", pair: "旋转的一对", wavelengths: "波长", bias: "偏置", integer: "整数", real: "实数", list: "整数列表", word: "词", flag: "是或否", map: "名称=整数", buckets: "分桶", factors: "因子", words_kind: "词"},
};

/* ---- the module ---- */
let module, registry;
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const encoder = new TextEncoder(), decoder = new TextDecoder();

async function load() {
  const words = n => new DataView(module.memory.buffer).setUint32(n, 0, true);
  const wasi = {environ_sizes_get: (a, b) => (words(a), words(b), 0), environ_get: () => 0, fd_close: () => 8, fd_seek: () => 8,
                fd_write: () => 8, clock_time_get: () => 8, proc_exit: () => { throw new Error("the module stopped"); }};
  const unpacked = await new Response(new Blob([bytes(MODULE)]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  module = (await WebAssembly.instantiate(unpacked, {wasi_snapshot_preview1: wasi})).instance.exports;
  module._initialize();
}

function text(at) {
  const all = new Uint8Array(module.memory.buffer);
  return at ? decoder.decode(all.subarray(at, all.indexOf(0, at))) : "";
}

const ask = (name, request) => send(name, Object.entries(request).map(([k, v]) => `${k}=${String(v).replaceAll("\n", " ")}\n`).join(""));
function send(name, request) {
  const sent = encoder.encode(request + "\0");
  const at = module.explore_memory(sent.length);
  new Uint8Array(module.memory.buffer).set(sent, at);
  const answer = text(module[name](at));
  module.explore_free(at);
  return answer ? JSON.parse(answer) : {error: "the module has no memory left"};
}

const numbers = a => new Float64Array(module.memory.buffer, a.at, a.n);

/* ---- what is chosen ---- */
const state = {spec: "sinusoidal", second: "", kind: "", length: 0, dim: 0, heads: 0, rows: 0, cols: 0, seed: 1, draws: 20, shift: 0, head: 0,
               products: 0, counter: 0, words: "", causal: 1, query: 0, times: 1, q: "", k: "", tokens: "", chosen: "", twice: 0,
               lang: navigator.language.startsWith("zh") ? "zh" : "en"};
let offers = {kinds: [], tokens: []}, shown = null, dropped = null; // dropped: a model's file
const t = name => TEXTS[state.lang][name] ?? name;
const find = name => registry.encodings.find(e => e.name === name.toLowerCase());

/* A SPEC as parts [{name, settings}], and back. A piece that names no setting continues the value before it. */
function partsOf(spec) {
  return spec.split(/\+(?![^[]*\])/).filter(Boolean).map(part => {
    const [, name, inside] = /^([^[]*)(?:\[(.*)\])?/.exec(part), e = find(name.trim()), settings = {};
    const known = [...(e?.settings ?? []), ...registry.settings].map(s => s.name);
    let last = null;
    for (const piece of (inside ?? "").split(/[:, ]/).filter(Boolean)) {
      const at = piece.indexOf("="), key = piece.slice(0, at);
      if (at > 0 && (last === null || known.includes(key))) settings[last = key] = piece.slice(at + 1);
      else if (last !== null) settings[last] += ":" + piece;
    }
    return {name: name.trim(), settings};
  });
}
const specOf = parts => parts.map(({name, settings}) => {
  const all = Object.entries(settings).filter(([, v]) => v !== "");
  return name + (all.length ? `[${all.map(([k, v]) => `${k}=${v}`).join(":")}]` : "");
}).join("+");
const nameOf = spec => partsOf(spec)[0]?.name ?? "";

function setSetting(which, part, name, value) {
  const parts = partsOf(state[which]);
  parts[part].settings[name] = value;
  choose(which, specOf(parts));
}

/* ---- the address keeps it ---- */
const KEPT = ["second", "kind", "length", "dim", "heads", "rows", "cols", "seed", "draws", "shift", "head", "products", "counter", "words", "causal",
              "query", "times", "q", "k", "tokens", "chosen", "twice", "lang"];
const usual = {...state};
let remembering = 0;
function remember() { // browsers refuse a change at each step of a slider
  clearTimeout(remembering);
  remembering = setTimeout(write, 250);
}
function write() {
  const parts = [encodeURIComponent(state.spec), ...KEPT.filter(k => state[k] !== usual[k] && !(state[k] === 0 && k !== "causal")).map(k => `${k}=${encodeURIComponent(state[k])}`)];
  history.replaceState(null, "", "#" + parts.join("&"));
}
function recall() {
  const [spec, ...rest] = location.hash.slice(1).split("&");
  const start = START.split(" ").filter(Boolean);
  Object.assign(state, usual, {lang: state.lang}); // an address without a language keeps the reader's
  if (start.length) state.spec = start[0], state.second = start[1] ?? "";
  if (spec) state.spec = decodeURIComponent(spec), state.second = "";
  for (const part of rest) {
    const [k, v] = part.split("=").map(decodeURIComponent);
    if (KEPT.includes(k) && (k !== "lang" || TEXTS[v])) state[k] = typeof usual[k] === "number" ? Number(v) : v;
  }
  for (const field of ["words", "q", "k", "tokens"]) $(field).value = state[field];
  $("causal").checked = !!state.causal;
}

/* ---- controls ---- */
function element(name, text, properties) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  return Object.assign(e, properties);
}
const option = (to, value, label) => to.append(element("option", label, {value}));

function fillEncodings() {
  for (const which of ["spec", "second"]) {
    const select = $(which === "spec" ? "encoding" : "other");
    select.textContent = "";
    if (which === "second") option(select, "", t("none"));
    for (const place of ["input", "rotary", "score", "weight"]) {
      const group = element("optgroup", undefined, {label: t(place)});
      for (const e of registry.encodings) if (e.place === place) option(group, e.name, `${e.name}: ${say(e.title)}`);
      select.append(group);
    }
    option(select, "+", t("several"));
    select.lastChild.hidden = true; // shown only where a SPEC joins several
    select.value = select.kept ?? "";
  }
}

let dragged = false; // while a slider moves, pictures of many draws have few: each step is to be seen at once
const DRAGGED_DRAWS = 3;
function slider(name, low, high, value, set, logarithmic, done) {
  const row = element("label", undefined, {className: "slider"}), label = t(name);
  const to = v => logarithmic ? Math.log2(v) : v, from = v => logarithmic ? Math.round(2 ** v) : Number(v);
  const range = element("input", undefined, {type: "range", min: to(low), max: to(high), step: logarithmic ? 0.01 : 1});
  const box = element("input", undefined, {type: "number", min: low, max: high, step: "any", value});
  range.value = to(value); range.dataset.name = name;
  range.setAttribute("aria-label", label); range.setAttribute("aria-valuetext", value); box.setAttribute("aria-label", label);
  range.oninput = () => { dragged = true; box.value = from(range.value); range.setAttribute("aria-valuetext", box.value); set(from(range.value)); };
  range.onchange = () => { dragged = false; later(); done?.(); };
  box.onchange = () => { range.value = to(box.value); set(Number(box.value)); done?.(); };
  row.append(element("span", label), range, box);
  $("sizes").append(row);
}

function check(name, on, set) {
  const row = element("label", undefined, {className: "check"}), box = element("input", undefined, {type: "checkbox", checked: on});
  box.dataset.name = name;
  box.onchange = () => { set(box.checked); later(); };
  row.append(box, element("span", t(name)));
  $("sizes").append(row);
}

function field(name, hint) {
  const row = element("label"), box = element("input", undefined, {value: state[name], placeholder: hint, spellcheck: false});
  box.oninput = () => { state[name] = box.value; later(); };
  row.append(element("span", t(name)), box);
  $("sizes").append(row);
}

const segments = text => /\s/.test(text.trim()) ? text : text.replace(/(?<=[\u3400-\u9fff])(?=[\u3400-\u9fff])/g, " ").trim(); // Chinese is written without blanks
const sentence = () => segments(state.words.trim() || t("example"));

function refill(name) { // what stands there follows from what was changed, which keeps the focus
  fillSizes();
  $("sizes").querySelector(`[data-name="${name}"]`)?.focus();
}
function fillSizes() {
  $("sizes").textContent = "";
  const kind = state.kind, offer = offers.kinds.find(k => k.kind === kind);
  const set = name => v => { state[name] = v; later(); };
  const number = (name, low, high, usual, logarithmic) => slider(name, low, high, state[name] || usual, set(name), logarithmic);
  if (kind === "sentence") {
    const n = sentence().split(/\s+/).length * state.times;
    number("shift", 0, 4096, 0);
    number("query", 1, n, n);
    number("dim", 4, 256, group()?.dim || 64);
    slider("heads", 1, 16, state.heads || 1, set("heads"), false, () => refill("heads"));
    if ((state.heads || 1) > 1) number("head", 1, state.heads, 1);
    number("seed", 1, 99, 1);
    check("times", state.times > 1, on => { state.times = on ? 2 : 1; state.query = 0; refill("times"); });
  } else if (offer) {
    if (offer.grid) number("rows", 2, 32, offer.place === "score" ? 7 : 16), number("cols", 2, 32, offer.place === "score" ? 7 : 32);
    else if (kind !== "words") number("length", 2, kind === "wavelengths" ? 1 << 20 : 1024, usualLength(offer), kind === "wavelengths");
    if (!["buckets"].includes(kind)) number("dim", 2, 256, group()?.dim || offer.dim);
    if (["bias", "mass", "factors"].includes(kind) && offer.place !== "rotary") number("heads", 1, 64, group()?.heads || 8);
    if (["decay", "mass"].includes(kind) && offer.place === "rotary") number("draws", 1, 200, 20);
    if (["heatmap", "curves", "pair", "similarity2d"].includes(kind)) field("chosen", t(`chosen_${kind}`));
    if (kind.startsWith("similarity") && offer.place === "input") check("products", !!state.products, on => { state.products = Number(on); });
    if (["heatmap", "curves"].includes(kind) && !offer.grid) check("counter", !!state.counter, on => { state.counter = Number(on); });
    if (offers.learns || ["decay", "mass", "words"].includes(kind)) number("seed", 1, 99, 1);
    if (!offer.grid && kind !== "words") check("twice", !!state.twice, on => { state.twice = Number(on); });
  }
  for (const which of ["spec", "second"])
    partsOf(state[which]).forEach((part, i) => {
      const base = find(part.name)?.settings.find(s => s.name === "base");
      if (base) slider(which === "spec" ? "base" : "base2", 2, 1e7, Number(part.settings.base ?? base.default) || 10000, v => {
        const all = partsOf(state[which]);
        all[i].settings.base = v; state[which] = $(which).value = specOf(all); later();
      }, true);
    });
}

/* The group of layers of the dropped file whose SPEC it is: its width and its numbers count. */
const group = () => dropped && groupsOf(dropped).find(g => g.spec === state.spec);

/* Pictures that draw many vectors are shorter here than those of the tool. */
const usualLength = offer => ["decay", "mass"].includes(offer.kind) ? 256 : offer.kind === "wavelengths" && group() && dropped.model.context?.max_positions || offer.length;

function oneSetting(which, part, s, value) {
  const row = element("label", undefined, {className: "setting"});
  const words = s.range && s.range.includes("|") ? s.range.split("|") : null, box = element(words ? "select" : "input");
  if (words) {
    option(box, "", `${t("default")}${s.default ? ": " + s.default : ""}`);
    words.forEach(w => option(box, w, w));
  } else box.placeholder = s.default || "–";
  box.value = value ?? "";
  box.onchange = () => setSetting(which, part, s.name, box.value.trim());
  row.append(element("span", `${s.name}  (${t(s.type)}${s.range && !words ? ", " + s.range : ""})`), box, element("small", say(s.meaning)));
  return row;
}

function fillSettings() {
  $("settings").textContent = "";
  for (const which of ["spec", "second"])
    partsOf(state[which]).forEach((part, i) => {
      const e = find(part.name);
      if (!e) return;
      $("settings").append(element("h3", part.name), ...e.settings.map(s => oneSetting(which, i, s, part.settings[s.name])));
      const all = element("details");
      all.append(element("summary", t("common")), ...registry.settings.map(s => oneSetting(which, i, s, part.settings[s.name])));
      $("settings").append(all);
    });
}

function fillKinds() {
  const kinds = [...new Set(offers.kinds.map(k => k.kind)), "sentence"];
  if (!kinds.includes(state.kind)) pick(kinds[0]);
  $("kinds").textContent = "";
  for (const kind of kinds) {
    const on = kind === state.kind, b = element("button", kind === "words" ? t("words_kind") : t(kind), {type: "button", tabIndex: on ? 0 : -1});
    b.role = "tab"; b.dataset.kind = kind; b.setAttribute("aria-selected", on); b.setAttribute("aria-controls", "shown");
    b.onclick = () => { pick(kind); fillKinds(); fillSizes(); later(); $("kinds").querySelector('[aria-selected="true"]').focus(); };
    b.onkeydown = e => { const to = {ArrowLeft: b.previousSibling, ArrowRight: b.nextSibling, Home: b.parentNode.firstChild, End: b.parentNode.lastChild}[e.key]; if (to) e.preventDefault(), to.click(); };
    $("kinds").append(b);
  }
  $("sentence").hidden = !["sentence", "words"].includes(state.kind);
  $("typed").hidden = $("causal").parentNode.hidden = state.kind !== "sentence";
  $("tokens").parentNode.hidden = !offers.tokens.length;
  $("tokens").placeholder = offers.tokens.map(one => `${one.name}: ${say(one.meaning)}`).join("; ");
}
function pick(kind) {
  state.kind = kind; state.length = state.dim = state.heads = state.rows = state.cols = state.query = 0; state.chosen = "";
}

function problem(sentence) {
  $("problem").hidden = !sentence;
  $("problem").textContent = sentence ? say(sentence) : "";
  $("figure").classList.toggle("stale", !!sentence);
}

function showSelect(select, spec) {
  const parts = partsOf(spec);
  select.value = select.kept = parts.length > 1 ? "+" : (parts[0]?.name ?? "").toLowerCase();
}

/* `which` is "spec" or "second"; the pictures offered are those that both have. */
function choose(which, spec) {
  $(which).value = state[which] = spec;
  const answers = [state.spec, state.second].filter(Boolean).map(one => ask("explore_offers", {spec: one})), wrong = answers.find(a => a.error);
  $("second").parentNode.hidden = !state.second;
  if (wrong) { problem(wrong.error); return; }
  offers = {...answers[0], tokens: answers.flatMap(a => a.tokens), learns: answers.some(a => a.learns),
            kinds: answers[0].kinds.filter(k => answers.every(a => a.kinds.some(one => one.kind === k.kind)))};
  showSelect($("encoding"), state.spec); showSelect($("other"), state.second);
  const all = [state.spec, state.second].flatMap(partsOf).map(part => find(part.name)).filter(Boolean);
  $("about").replaceChildren(...all.map(e => { const p = element("p"); p.append(element("b", e.name + " "), [e.title, e.models, e.beyond].filter(Boolean).map(say).map(s => /[.。]$/.test(s) ? s : s + (state.lang === "zh" ? "。" : ".")).join(" ")); return p; }));
  $("formula").textContent = all.map(e => [e.name, e.formula, e.symbols?.replace(/^(.+?: )(.*)$/gm, (_, letter, meaning) => letter + say(meaning))].filter(Boolean).join("\n\n")).join("\n\n\n");
  fillKinds(); fillSizes(); fillSettings(); later();
}

/* ---- language: patterns of a catalogue, as the report has them ---- */
let patterns = null, whole = null; // rows with places, and without
const said = new Map();
function say(text, deep = 0) {
  if (state.lang === "en" || !text || deep > 4) return text;
  whole ??= new Map(WORDS.filter(([english]) => !/%[sdwt]/.test(english)));
  patterns ??= WORDS.filter(([english]) => !whole.has(english)).map(([english, chinese]) => {
    const kinds = [];
    const regex = english.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/%([sdwt])/g, (_, k) => { kinds.push(k); return {d: "([-+0-9.e]+?)", w: "([^ ]+?)"}[k] ?? "([^]+?)"; });
    return {regex: new RegExp(`^${regex}$`), chinese, kinds, letters: english.replace(/%[sdwt]/g, "").length};
  }).sort((a, b) => b.letters - a.letters);
  if (text.includes("\n")) return text.split("\n").map(line => say(line, deep)).join("\n");
  if (whole.has(text)) return whole.get(text);
  if (!said.has(text)) {
    const found = patterns.find(p => p.letters && p.regex.test(text)), places = found && found.regex.exec(text).slice(1);
    said.set(text, !found ? text
                          : found.chinese.replace(/%([1-9a-f])/g, (_, n) => { const k = parseInt(n, 16) - 1; return found.kinds[k] === "s" ? say(places[k], deep + 1) : places[k]; }));
  }
  return said.get(text);
}

function inLanguage() { // all that is written, anew
  said.clear(); translate(); fillEncodings();
  if (dropped) showModel();
  choose("spec", state.spec);
}
function translate() {
  document.documentElement.lang = state.lang === "zh" ? "zh-Hans" : "en";
  for (const e of document.querySelectorAll("[data-t]")) e.textContent = t(e.dataset.t);
  $("language").textContent = state.lang === "en" ? "中文" : "English";
  $("language").lang = state.lang === "en" ? "zh" : "en";
  $("words").placeholder = t("example");
  $("kinds").setAttribute("aria-label", t("pictures"));
}

/* ---- drawing: one SVG, from figures as the module gives them ---- */
const esc = s => String(s ?? "").replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
const short = x => x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(2).replace(/\.?0*e\+?/, "e") : String(Number(x.toPrecision(4)));
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
  table[256] = 0x44999999; // nothing: not looked at
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

const broad = (s, latin = 6.9, other = 13) => [...s].reduce((sum, c) => sum + (c > "\u2e7f" ? other : latin), 0);
const fit = (s, width) => broad(s) > width ? `textLength="${Math.floor(width)}" lengthAdjust="spacingAndGlyphs"` : "";
const label = (x, y, s, more = "") => `<text x="${x}" y="${y}" ${more}>${esc(s)}</text>`;

function lines(s, width) { // a title in lines that fit: at blanks, or between Chinese characters
  const out = [];
  for (const part of String(s ?? "").split("\n")) {
    let line = "";
    for (const word of part.match(/[\u2e80-\uffff]|[^\u2e80-\uffff\s]+\s*|\s+/g) ?? []) {
      if (line && broad(line + word.trimEnd(), 8.3, 15) > width) out.push(line.trimEnd()), line = "";
      line += word;
    }
    out.push(line.trimEnd());
  }
  return out.filter(Boolean);
}

function grid(f, x, y, w, h) {
  const names = f.row_names ? Math.min(90, 12 + Math.max(...f.row_names.map(n => broad(n, 6.5)))) : 0;
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
  if (f.decimals >= 0 && cw >= 22 && ch >= 12)
    values.forEach((v, i) => { const onLight = f.signed ? Math.abs(v) < .6 * f.high : v > (f.low + f.high) / 2; if (v === v) s += label(x0 + (i % f.cols + .5) * cw, y0 + (Math.floor(i / f.cols) + .5) * ch + 4, v.toFixed(f.decimals), `class="tick" text-anchor="middle" style="fill:${onLight ? "#000" : "#fff"};font-size:${Math.min(11.5, cw / 2.9).toFixed(1)}px"`); });
  if (f.second) s += label(0, 0, f.second, `class="tick" text-anchor="middle" transform="translate(${x0 + iw + 57},${y0 + ih / 2}) rotate(-90)"`);
  const bx = x0 + iw + 12 + (f.second ? 58 : 0), stops = registry.scales[f.signed ? 1 : 0];
  s += `<linearGradient id="scale${cells.length}" x1="0" y1="1" x2="0" y2="0">${stops.map((c, i) => `<stop offset="${i / (stops.length - 1)}" stop-color="rgb(${c})"/>`).join("")}</linearGradient>`;
  s += `<rect x="${bx}" y="${y0}" width="12" height="${ih}" fill="url(#scale${cells.length})"/>`;
  for (const v of ticks(f.low, f.high, Math.max(2, Math.min(6, ih / 40)))) s += label(bx + 16, y0 + (1 - (v - f.low) / (f.high - f.low)) * ih + 4, short(v), 'class="tick"');
  if (state.kind === "sentence" && f.square) s += `<rect x="${x0}" y="${y0 + queryOf() * ch}" width="${iw}" height="${ch}" class="chosen"/>`;
  cells.push({f, x: x0, y: y0, w: iw, h: ih});
  return s;
}

function ink(colour) { // what is nearly black is not seen on dark paper
  const rgb = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16)), light = .3 * rgb[0] + .6 * rgb[1] + .1 * rgb[2];
  return isDark() && light < 90 ? `rgb(${rgb.map(v => Math.round(v + (255 - v) * (.62 - light / 200)))})` : colour;
}
const isDark = () => document.documentElement.dataset.theme === "dark";

function extent(f) {
  let [xl, xh, yl, yh] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const c of f.curves) {
    const y = [c.y, c.low, c.high].filter(Boolean);
    for (const v of numbers(c.x)) if (v === v) xl = Math.min(xl, v), xh = Math.max(xh, v);
    for (const a of y) for (const v of numbers(a)) if (Number.isFinite(v) && (!f.log_y || v > 0)) yl = Math.min(yl, v), yh = Math.max(yh, v);
  }
  if (f.kind === "arrows") { const m = 1.08 * Math.max(...[xl, xh, yl, yh].map(Math.abs)); return [-m, m, -m, m]; }
  if (f.steps && f.curves[0].x.n > 1) { const x = numbers(f.curves[0].x), half = (x[1] - x[0]) / 2; xl -= half; xh += half; }
  if (f.high > f.low) [yl, yh] = [f.low, f.high];
  else if (f.log_y) yl /= 1.15, yh *= 1.15;
  else { const pad = (yh - yl || Math.abs(yh) || 1) * .05; yl -= pad; yh += pad; }
  return [xl, xh, yl, yh];
}

const keyWidth = named => 48 + Math.max(...named.map(c => broad(c.name, 6.3, 11.5)));
const keyColumns = (named, w) => Math.max(1, Math.floor(w / keyWidth(named)));

function curves(f, x, y, w, h) {
  const arrows = f.kind === "arrows", named = f.curves.filter(c => c.name), left = 66, under = 44, right = 12;
  const key = named.length > 1 || (named.length && arrows) ? Math.ceil(named.length / keyColumns(named, w - left)) * 17 + 4 : 0;
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
    const cx = numbers(c.x), cy = numbers(c.y), dash = f.ordered ? "" : dashes[i % dashes.length], hue = c.style === 2 ? "#999" : ink(c.colour), stroke = `stroke="${hue}"`;
    if (arrows) {
      s += `<g class="turn" style="animation-delay:${-4 + 4 * i / f.curves.length}s"><path fill="none" ${stroke} stroke-width="2" d="M${sx(0)} ${sy(0)}L${sx(cx[0])} ${sy(cy[0])}"/><circle cx="${sx(cx[0])}" cy="${sy(cy[0])}" r="4" fill="${hue}"/></g>`;
      return;
    }
    const edge = (k, side) => cx.length < 2 ? sx(cx[k]).toFixed(1) : sx(cx[k] + side * Math.abs(cx[1] - cx[0]) / 2).toFixed(1);
    const path = a => { let d = "", pen = 0, last = 0; for (let k = 0; k < cx.length; k++) { const v = a[k]; if (!Number.isFinite(v) || (f.log_y && v <= 0) || (f.log_x && cx[k] <= 0)) { pen = 0; continue; } const px = sx(cx[k]).toFixed(1), py = sy(v).toFixed(1); d += pen ? f.steps ? `H${((+px + last) / 2).toFixed(1)}V${py}H${px}` : `L${px} ${py}` : f.steps ? `M${edge(k, -1)} ${py}H${px}` : `M${px} ${py}`; pen = 1; last = +px; } return f.steps && pen ? d + `H${edge(cx.length - 1, 1)}` : d; };
    if (c.low && c.high) { const lo = numbers(c.low), hi = numbers(c.high); let d = ""; for (let k = 0; k < cx.length; k++) d += `${k ? "L" : "M"}${sx(cx[k]).toFixed(1)} ${sy(hi[k]).toFixed(1)}`; for (let k = cx.length - 1; k >= 0; k--) d += `L${sx(cx[k]).toFixed(1)} ${sy(lo[k]).toFixed(1)}`; s += `<path d="${d}Z" fill="${hue}" opacity=".18"/>`; }
    if (c.style === 1) for (let k = 0; k < cx.length; k++) { if (Number.isFinite(cy[k]) && (!f.log_y || cy[k] > 0)) s += `<circle cx="${sx(cx[k]).toFixed(1)}" cy="${sy(cy[k]).toFixed(1)}" r="2.6" fill="${hue}"/>`; }
    else s += `<path fill="none" ${stroke} stroke-width="1.7" stroke-dasharray="${dash}" d="${path(cy)}"/>`;
  });
  for (const [v, n] of f.marks) s += `<path d="M${sx(v)} ${y0}v${ih}" stroke="#999" stroke-dasharray="3 3"/>` + label(sx(v) + 4, y0 + 12, n, 'class="tick"');
  s += "</g>";
  if (f.x_label) s += label(x0 + iw / 2, y0 + ih + 34, f.x_label, `text-anchor="middle" ${fit(f.x_label, iw + 2 * right - 6)}`);
  if (f.y_label) s += label(0, 0, f.y_label, `text-anchor="middle" transform="translate(${x + 13},${y0 + ih / 2}) rotate(-90)"`);
  if (key) {
    const across = keyColumns(named, w - left), wide = Math.min(keyWidth(named), w - left);
    named.forEach((c, i) => { const kx = x0 + i % across * wide, ky = y0 + ih + 54 + Math.floor(i / across) * 17, dash = f.ordered ? "" : dashes[f.curves.indexOf(c) % dashes.length]; const hue = c.style === 2 ? "#999" : ink(c.colour); s += (c.style === 1 ? `<circle cx="${kx + 11}" cy="${ky - 4}" r="3" fill="${hue}"/>` : `<path d="M${kx} ${ky - 4}h22" stroke="${hue}" stroke-width="2" stroke-dasharray="${dash}"/>`) + label(kx + 27, ky, c.name, `class="tick" ${fit(c.name, w - left - 27)}`); });
  }
  plots.push({f, x: x0, y: y0, w: iw, h: ih, sx, xl, xh});
  return s;
}

function spoken(f) { // its texts in the page's language
  const all = {...f};
  for (const k of ["title", "x_label", "y_label", "value_label", "second"]) all[k] = say(f[k]);
  if (f.curves) all.curves = f.curves.map(c => ({...c, name: say(c.name)}));
  if (f.marks) all.marks = f.marks.map(([x, n]) => [x, say(n)]);
  all.panels = f.panels.map(spoken);
  return all;
}

function draw(figure) {
  const f = spoken(figure);
  cells.length = plots.length = 0;
  const width = Math.max(330, Math.min(1080, $("figure").clientWidth || 1080)), panels = f.kind === "panels" ? f.panels : [f];
  const most = Math.max(1, Math.floor(width / 380)), columns = Math.min(most, f.columns || (panels.length < 4 ? panels.length : panels.length === 4 ? 2 : 3)), pw = width / columns;
  const head = lines(f.title, width);
  let y = 14 + head.length * 19, s = head.map((l, i) => label(width / 2, 20 + i * 19, l, 'class="title" text-anchor="middle"')).join("");
  const heights = [];
  panels.forEach((p, i) => {
    const row = Math.floor(i / columns), own = f.kind === "panels" ? lines(p.title, pw - 20).length * 17 + 6 : 0, named = p.kind !== "grid" ? (p.curves ?? []).filter(c => c.name) : [];
    let high = p.kind === "grid" && p.square ? Math.min(640, (pw - 130) * p.rows / p.cols + 60) : Math.min(480, Math.max(260, pw * (columns > 1 ? .72 : .56)));
    if (p.kind === "grid" && p.decimals >= 0 && p.rows <= 4) high = 64 + 34 * p.rows; // a few rows of numbers
    if (p.kind === "arrows") high = Math.min(520, pw * .8);
    if (named.length > 1) high += Math.ceil(named.length / keyColumns(named, pw - 66)) * 17;
    heights[row] = Math.max(heights[row] ?? 0, high + own);
  });
  panels.forEach((p, i) => {
    const row = Math.floor(i / columns), top = y + heights.slice(0, row).reduce((a, b) => a + b, 0), own = f.kind === "panels" ? lines(p.title, pw - 20) : [];
    s += own.map((l, k) => label(i % columns * pw + pw / 2, top + 14 + k * 17, l, 'text-anchor="middle"')).join("");
    const under = own.length * 17 + (own.length ? 6 : 0);
    s += (p.kind === "grid" ? grid : curves)(p, i % columns * pw, top + under, pw, heights[row] - under);
  });
  const high = y + heights.reduce((a, b) => a + b, 0) + 8, dark = isDark();
  const style = `text{font:13px system-ui,"Noto Sans","Noto Sans CJK SC",sans-serif;fill:${dark ? "#e6eaf0" : "#1c2430"}}.tick{font-size:11.5px}.title{font-size:15px;font-weight:600}.frame{fill:none;stroke:${dark ? "#7b8796" : "#5b6675"}}.rule{stroke:${dark ? "#2b333e" : "#e4e8ee"};fill:none}.point{font-size:18px;fill:#e00}.chosen{fill:none;stroke:#e69f00;stroke-width:2}`;
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
function placeOf(e) {
  const svg = $("figure").firstElementChild, box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
  return [(e.clientX - box.left) * scale, (e.clientY - box.top) * scale];
}
function onPointer(e) {
  if ($("figure").firstElementChild) read(...placeOf(e));
}
const queryOf = () => { const n = sentence().split(/\s+/).length * state.times; return Math.min(state.query || n, n) - 1; };
function onPress(e) { // a row of a sentence is a query
  if (state.kind !== "sentence" || !cells.length) return;
  const [px, py] = placeOf(e), c = cells.find(c => px >= c.x && px < c.x + c.w && py >= c.y && py < c.y + c.h);
  if (c?.f.square) state.query = 1 + Math.floor((py - c.y) / c.h * c.f.rows), fillSizes(), later();
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
  for (const k of ["dim", "heads", ...(offer?.grid ? ["rows", "cols"] : ["length"])]) if (state[k]) r[k] = state[k];
  if (state.second) r.spec2 = state.second;
  if (offer && !offer.grid && !state.length && usualLength(offer)) r.length = usualLength(offer);
  if (offer && ["decay", "mass"].includes(state.kind)) { r.length = state.length || usualLength(offer); if (offer.place === "rotary") r.draws = dragged ? Math.min(state.draws, DRAGGED_DRAWS) : state.draws; }
  for (const k of ["products", "counter", "chosen"]) if (state[k]) r[k] = state[k];
  if (state.twice && offer && !offer.grid) r.trained = r.length || usualLength(offer), r.length = 2 * r.trained;
  if (group()) r.group = group().index, r.dim ||= group().dim, r.heads ||= group().heads || 8;
  if (state.kind === "words") r.words = sentence();
  return r;
}

function sentenceOf() {
  const r = {spec: state.spec, words: sentence(), causal: state.causal, dim: state.dim || group()?.dim || 64, heads: state.heads || 1, seed: state.seed,
             head: Math.min(state.head || 1, state.heads || 1) - 1, shift: state.shift, times: state.times, query: queryOf()};
  if (state.second) r.spec2 = state.second;
  if (group()) r.group = group().index;
  for (const k of ["q", "k", "tokens"]) if (state[k]) r[k] = state[k];
  return r;
}

function show() {
  const begun = performance.now(), isSentence = state.kind === "sentence";
  const answer = isSentence ? ask("explore_attend", sentenceOf()) : ask("explore_picture", requestOf());
  remember();
  problem(answer.error);
  $("changed").textContent = "";
  if (answer.error) return;
  shown = isSentence ? answer.figure : answer;
  if (isSentence && state.shift)
    $("changed").textContent = answer.changes.map((change, i) => (answer.changes.length > 1 ? nameOf(i ? state.second : state.spec) + ": " : "") +
      t("shifted").replace("{n}", state.shift).replace("{x}", short(change)) + " " + t(change < 1e-9 ? "relative" : "absolute")).join(" ");
  $("figure").innerHTML = draw(shown);
  if (pointer.x) $("readout").textContent = readAt(pointer.x, pointer.y);
  state.took = performance.now() - begun;
  $("time").textContent = `${t("time")} ${state.took.toFixed(0)} ms`;
}

/* ---- a model's own file ---- */
const shortList = v => v.length > 6 ? `${v.length} ${t("numbers")}: ${v.slice(0, 3).map(short).join(", ")} … ${short(v.at(-1))}` : v.join(", ");
function put(list, facts, rules, before = "") {
  for (const [name, v] of Object.entries(facts)) {
    if (before === "" && ["layers", "encoding", "spec", "arrays", "trained"].includes(name)) continue;
    if (v && typeof v === "object" && !Array.isArray(v)) { put(list, v, rules, `${before}${name}.`); continue; }
    const rule = rules[before + name], said = v === null ? t("none") : Array.isArray(v) ? shortList(v) : String(v);
    if (v === null && !rule) continue;
    const value = element("dd", said);
    if (rule) value.append(element("small", rule));
    list.append(element("dt", before + name), value);
  }
}
function showPart(of, model, more) {
  of.append(element("h3", `${model.tower ? model.tower + ": " : ""}${model.model_type ?? ""}: ${model.encoding}${model.context?.max_positions ? `, ${t("context")} ${model.context.max_positions}` : ""}`));
  model.groups.forEach((g, i) => {
    const held = more.groups[i], box = element("details", undefined, {open: model.groups.length === 1}), list = element("dl"), look = element("button", t("look"), {type: "button"});
    const where = g.layers === "input" ? t("at_input") : `${t("layers")}: ${g.layers === "all" ? t("all") : [g.layers].flat().join(", ")}`;
    put(list, g, held.rules);
    look.onclick = () => { state.dim = state.length = 0; choose("spec", held.spec); };
    box.append(element("summary", `${g.encoding}, ${where}`), element("code", held.spec), look, list);
    of.append(box);
  });
  for (const w of more.warnings) of.append(element("p", say(w), {className: "warning"}));
  more.towers.forEach((one, i) => showPart(of, model.towers[i], one));
}
function showModel() {
  $("model").textContent = "";
  showPart($("model"), dropped.model, dropped);
}
const groupsOf = part => [...part.groups, ...part.towers.flatMap(groupsOf)];
async function readFile(file) {
  const answer = send("explore_model", await file.text());
  if (answer.error) { problem(`${file.name}: ${answer.error}`); return; }
  dropped = answer;
  showModel();
  const first = groupsOf(answer).find(g => !ask("explore_offers", {spec: g.spec}).error);
  state.dim = state.length = 0; state.second = "";
  if (first) choose("spec", first.spec);
}

let waiting = 0;
function later() { if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; show(); }); }

function save(what) {
  const name = `posenc-${state.spec.replace(/[^\w.=+-]+/g, "_")}-${state.kind}.${what}`, svg = $("figure").innerHTML;
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
  const typed = field => e => { state[field] = e.target.value; if (field === "words") state.query = 0, fillSizes(); later(); };
  $("encoding").onchange = e => choose("spec", e.target.value);
  $("other").onchange = e => choose("second", e.target.value);
  for (const which of ["spec", "second"]) $(which).onchange = e => choose(which, e.target.value.trim());
  for (const form of document.forms) form.onsubmit = e => e.preventDefault();
  for (const field of ["words", "q", "k", "tokens"]) $(field).oninput = typed(field);
  $("causal").onchange = e => { state.causal = Number(e.target.checked); later(); };
  $("language").onclick = () => { state.lang = state.lang === "en" ? "zh" : "en"; inLanguage(); };
  $("theme").onclick = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; show(); };
  $("figure").onpointermove = onPointer; $("figure").onclick = onPress; $("figure").onkeydown = onKey;
  for (const b of document.querySelectorAll("[data-save]")) b.onclick = () => save(b.dataset.save);
  addEventListener("hashchange", () => { recall(); inLanguage(); });
  addEventListener("resize", later);
  addEventListener("dragover", e => e.preventDefault());
  addEventListener("drop", e => { e.preventDefault(); if (e.dataTransfer.files[0]) readFile(e.dataTransfer.files[0]); });
  $("file").onchange = e => { if (e.target.files[0]) readFile(e.target.files[0]); };
  $("second").value = state.second;
  choose("spec", state.spec);
}
begin().catch(e => problem(String(e)));
