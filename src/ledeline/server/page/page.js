// The page of `ledeline serve`: sends ledes to v1/headlines and shows the headlines, and checks
// headlines by v1/check.
// Texts are inserted as text, never as HTML. URLs are relative, for proxies that add a prefix.

const MAX_OPEN = 5; // results; if there are more, only the first is open
const MAX_ROWS = 80; // lede words in a heat map
const MIN_SHARE = 0.01; // smaller ones are neither marked nor named
const MIN_NUMBERED_SHARE = 0.05; // smaller ones have no number above the word
const MAX_NAMED = 4; // lede words named for a headline word
const TOKEN_KEY = "ledeline-token";
const SURROGATE_PAIRS = /[\ud800-\udbff][\udc00-\udfff]/g;

const NO_HEADLINE = "(no headline)";
const HINT = "Point at a word of the headline, or use tab and arrow keys, to see where it comes from.";
const SCORES = "Score: mean log-probability per sub-word; 0 is certainty. Per cent: exp(score).";
const SUPPORT = "Support: how likely it is that the lede supports the headline. ";
const WARNINGS = {
  empty: "No text",
  invalid: "No text",
  unseen: "Unknown word",
  cut: "Lede cut short",
  truncated: "Not finished",
  repetition: "Repetition",
  doubt: "Doubtful",
  "left out": "Left out",
};
const NOTHING_TO_CHECK = "Nothing to check: the lede or the headline has no words.";

const $ = (id) => document.getElementById(id);
const on = (id, kind, action) => $(id).addEventListener(kind, action);
const grouped = new Intl.NumberFormat("en").format; // 1,000

let token = ""; // sent to the server, if it needs one
let limits = null; // of the server, once they are known
let examples = []; // ledes to fill in
let running = null; // AbortController of the request under way
let action = write; // what was asked for last: write, or check
let waitsForToken = false; // whether to do it again once there is a token
let shown = []; // the Marks of each result in the list

// --- elements ---

/** Make an element. Attributes that are functions become event listeners. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const button = (attributes, ...parts) => make("button", { type: "button", ...attributes }, ...parts);
const note = (...children) => make("p", { class: "note" }, ...children);

/** A user's text inside our own: isolated, so that its direction does not spread. */
const quoted = (text) => make("bdi", {}, text);

/** Show a message that screen readers announce. */
const say = (...parts) => $("status").replaceChildren(...parts);

const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
const spaceBefore = (spaced) => spaced.slice(0, spaced.length - spaced.trimStart().length);

// --- the server ---

class Refusal extends Error {
  /** `status` is that of HTTP; 0 if there was no answer, -1 if it cannot be read. */
  constructor(status, detail = "", seconds = 0) {
    super(detail);
    this.status = status;
    this.seconds = seconds; // to wait before a retry
  }
}

/** The server's answer; throws a Refusal or an AbortError. */
async function ask(path, body = null, signal = null) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const sent = body ? { method: "POST", body: JSON.stringify(body) } : {};
  try {
    const response = await fetch(path, { ...sent, headers, signal });
    if (response.ok) return await response.json();
    throw await refusal(response);
  } catch (error) {
    if (error instanceof Refusal || error.name === "AbortError") throw error;
    throw new Refusal(error instanceof SyntaxError ? -1 : 0);
  }
}

async function refusal(response) {
  // An answer that is not JSON comes from a proxy.
  const { detail } = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get("Retry-After")) || 1;
  return new Refusal(response.status, typeof detail === "string" ? detail : "", seconds);
}

/** The token, kept for this tab, or until the page is left if the browser has no storage. */
function keptToken(value = null) {
  try {
    if (value) sessionStorage.setItem(TOKEN_KEY, value);
    return sessionStorage.getItem(TOKEN_KEY) ?? "";
  } catch {
    return value ?? "";
  }
}

// --- errors ---

const sentence = (text) => text && `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;

/** What went wrong, and what to do. */
function explained({ status, message }) {
  const detail = sentence(message);
  switch (status) {
    case 0:
      return (
        "The server cannot be reached. Your text is still here. See that ledeline serve is " +
        "running and that you are connected to it; then try again."
      );
    case 413:
    case 422:
      return detail;
    case 503:
      return `The server is busy. ${detail}`;
    case 504:
      return `It took too long. ${detail}`;
    default:
      return status > 0
        ? `The server answered with an error (${status}). ${detail}`
        : "The answer cannot be read.";
  }
}

function fail(text, ...more) {
  $("error").replaceChildren(make("p", {}, text), ...more);
  $("error").hidden = false;
  say();
}

function clearError() {
  if ($("error").contains(document.activeElement)) $("write").focus();
  $("error").hidden = true;
  $("text").removeAttribute("aria-invalid");
}

function failed(error) {
  if (error.name === "AbortError") say("Cancelled. Your text is still here.");
  else if (error.status === 401) askForToken();
  else if (!(error instanceof Refusal)) fail(explained(new Refusal(-1)));
  else if ([0, 503, 504].includes(error.status)) fail(explained(error), retryButton(error));
  else fail(explained(error));
}

/** A button that counts down the seconds until the server may be asked again. */
function retryButton({ status, seconds }) {
  let left = status === 503 ? Math.ceil(seconds) : 0;
  const retry = button({ click: () => left < 0 && action() });
  const tick = () => {
    retry.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
    retry.setAttribute("aria-disabled", left > 0);
    if (left > 0) setTimeout(tick, 1000);
    left -= 1;
  };
  tick();
  return retry;
}

// --- the token ---

function showTokenForm() {
  if (token) $("token-note").textContent = "The server does not accept this token.";
  $("token-form").hidden = false;
}

function askForToken() {
  waitsForToken = true;
  showTokenForm();
  $("token").focus();
  say("The server needs a token. Your text is still here.");
}

async function useToken(event) {
  event.preventDefault();
  const value = $("token").value.trim();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    $("token-note").textContent = "A token has letters, digits and ASCII signs only.";
    return;
  }
  token = keptToken(value);
  $("token-form").reset();
  if (!(await describeModel())) return;
  $("token-form").hidden = true;
  $("write").focus();
  if (waitsForToken) action();
}

// --- copying ---

/** Copy, and confirm it in the status and in `label`, the text of the button. */
async function copy(text, label) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // navigator.clipboard needs a secure address; execCommand does not.
    if (!copyByCommand(text)) return say("Copying failed. Select the text and press Ctrl+C.");
  }
  say("Copied: ", quoted(text));
  label.textContent = "Copied";
  return setTimeout(() => (label.textContent = "Copy"), 1500);
}

function copyByCommand(text) {
  const before = document.activeElement;
  const box = make("textarea", { class: "unseen" });
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  before?.focus();
  return done;
}

// --- doubts ---

const doubtId = (number, place) => `doubt-${number}-${place}`;

/** Mark words as doubtful; `id` is that of the reason, which belongs to their description. */
function markDoubt(element, id) {
  element.classList.add("doubt");
  const described = element.getAttribute("aria-describedby");
  element.setAttribute("aria-describedby", described ? `${described} ${id}` : id);
}

/** A headline as text, its doubtful words marked; positions count characters, not UTF-16 units. */
function doubtedText({ headline, doubts = [] }, number) {
  const characters = [...headline];
  const parts = [];
  let done = 0;
  doubts.forEach(({ start, end, why }, place) => {
    if (end <= done) return; // within one that is marked already
    const from = Math.max(start, done);
    const words = make("span", { role: "mark", tabindex: 0, title: why });
    words.textContent = characters.slice(from, end).join("");
    markDoubt(words, doubtId(number, place));
    parts.push(characters.slice(done, from).join(""), words);
    done = end;
  });
  return [...parts, characters.slice(done).join("")];
}

/** The support as a number with a word; nothing if the headline was not checked. */
function supportNote({ headline, support, doubts }) {
  if (!headline || typeof support !== "number") return "";
  const words = doubts?.length ? "doubtful words are underlined" : "no doubtful words";
  return make("p", { class: "support note" }, `support ${percent(support)}, ${words}`);
}

// --- marks ---

/** The words of a headline and of its lede, and the marks that connect them. */
class Marks {
  constructor({ alignment, doubts = [] }, number) {
    const { heat_map: map, dropped } = alignment;
    this.map = map;
    this.reasons = map.headline.map(() => []); // of doubts, for each headline word
    this.dropped = new Set(dropped.map(({ place }) => place));
    this.readout = make("p", { id: `readout-${number}`, class: "readout" });
    this.source = map.source.map((word) => make("span", { class: "source" }, word.trimStart()));
    this.words = map.headline.map((word, j) => this.#word(word.trimStart(), j));
    this.pointed = this.focused = this.pinned = null; // positions of headline words
    this.marked = []; // spans of the lede
    this.heat = new HeatMap(this);
    doubts.forEach((doubt, place) => this.#markDoubt(doubt, doubtId(number, place)));
    this.update();
  }

  /** Mark the words that a doubt has a part of. */
  #markDoubt({ start, end, why }, id) {
    let behind = 0;
    this.map.headline.forEach((word, j) => {
      const last = behind + [...word].length;
      const first = last - [...word.trimStart()].length;
      behind = last;
      if (first >= end || last <= start) return;
      this.reasons[j].push(why);
      markDoubt(this.words[j], id);
    });
  }

  get view() {
    return this.map.spm && $("by-spm").checked ? "SPM" : "attention";
  }

  /** A row for each headline word, with a share for each lede word. */
  get rows() {
    return this.view === "SPM" ? this.map.spm : this.map.attention;
  }

  // The tab key moves to one of the words, the arrow keys to the others.
  #word(word, j) {
    const attributes = {
      class: "word",
      role: "button",
      tabindex: j ? -1 : 0,
      "aria-pressed": "false",
      "aria-describedby": this.readout.id,
      "data-place": j,
    };
    return make("span", attributes, word);
  }

  heading() {
    const heading = make("h3", {
      class: "headline",
      dir: "auto",
      mouseover: (event) => this.update({ pointed: placeOf(event) }),
      mouseleave: () => this.update({ pointed: null }),
      focusin: (event) => this.update({ focused: placeOf(event) }),
      focusout: () => this.update({ focused: null }),
      click: (event) => this.pin(placeOf(event)),
      keydown: (event) => this.#press(event),
    });
    this.words.forEach((word, j) => heading.append(spaceBefore(this.map.headline[j]), word));
    return heading;
  }

  /** The lede; runs of dropped words are struck out together. */
  lede() {
    const lede = make("p", { class: "lede", dir: "auto" });
    let run = null;
    this.source.forEach((word, i) => {
      const dropped = this.dropped.has(i);
      word.classList.add(dropped ? "dropped" : "used");
      (dropped && run ? run : lede).append(spaceBefore(this.map.source[i]));
      if (!dropped) run = null;
      else if (!run) lede.append((run = make("del")));
      (run ?? lede).append(word);
    });
    return lede;
  }

  /** Pin the marks of a word, or unpin them. */
  pin(place) {
    if (place === null) return;
    this.update({ pinned: this.pinned === place ? null : place });
    this.words.forEach((word, j) => word.setAttribute("aria-pressed", j === this.pinned));
  }

  #press(event) {
    const place = placeOf(event);
    if (place === null || event.ctrlKey || event.metaKey) return;
    const next = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
    const last = this.words.length - 1;
    const steps = { ArrowRight: next, ArrowLeft: -next, Home: -last, End: last };
    if (event.key in steps) {
      this.words[Math.min(Math.max(place + steps[event.key], 0), last)].focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.pin(place);
    } else {
      if (event.key === "Escape") this.pin(this.pinned);
      return;
    }
    event.preventDefault();
  }

  /** Mark the sources of the word that is pointed at, else focused, else pinned. */
  update(changes = {}) {
    Object.assign(this, changes);
    const place = this.pointed ?? this.focused ?? this.pinned;
    this.words.forEach((word, j) => {
      word.classList.toggle("current", j === place);
      if (this.focused !== null) word.tabIndex = j === this.focused ? 0 : -1;
    });
    for (const word of this.marked) word.classList.remove("marked");
    const places = place === null ? [] : this.#sources(place);
    this.marked = places.map((i) => this.#mark(this.source[i], this.rows[place][i]));
    this.readout.replaceChildren(...(place === null ? [HINT] : this.#description(place, places)));
  }

  /** Positions of the lede words that a headline word comes from, the likeliest first. */
  #sources(place) {
    const shares = this.rows[place];
    const places = [...shares.keys()].filter((i) => shares[i] >= MIN_SHARE);
    return places.sort((one, other) => shares[other] - shares[one]);
  }

  #mark(word, share) {
    word.classList.add("marked");
    word.style.setProperty("--share", share);
    word.dataset.share = share < MIN_NUMBERED_SHARE ? "" : Math.round(100 * share);
    return word;
  }

  #description(place, places) {
    const word = make("strong", {}, quoted(this.words[place].textContent));
    const parts = [word];
    const reasons = this.reasons[place].join("; ");
    // For the eye; the description of the word has it as well.
    if (reasons) parts.push(make("span", { "aria-hidden": "true" }, ` (doubtful: ${reasons})`));
    parts.push(`, by ${this.view}, from `);
    if (!places.length) return [...parts, "no word with 1 % or more"];
    places.slice(0, MAX_NAMED).forEach((i, rank) => {
      const share = ` (${percent(this.rows[place][i])})`;
      parts.push(rank ? ", " : "", quoted(this.source[i].textContent), share);
    });
    return parts;
  }

  /** Draw again, after the view was changed. */
  redraw() {
    this.update();
    this.heat.redraw();
  }
}

function placeOf(event) {
  const word = event.target.closest("[data-place]");
  return word && Number(word.dataset.place);
}

// --- the heat map ---

/** Every lede word (rows) against every headline word (columns); drawn when it is opened. */
class HeatMap {
  constructor(marks) {
    this.marks = marks;
    this.readout = note();
    this.place = make("div");
    const title = make("summary", {}, "Heat map: all words against all");
    this.details = make("details", { class: "map", toggle: () => this.redraw() }, title, this.place);
  }

  redraw() {
    this.readout.textContent = "Point at a cell, or move with the arrow keys, for exact values.";
    this.place.replaceChildren(...(this.details.open ? this.#parts() : []));
  }

  /** Positions of the lede words to show: all, or those with the largest shares. */
  #chosen() {
    const places = [...this.marks.source.keys()];
    if (places.length <= MAX_ROWS) return places;
    const most = places.map((i) => Math.max(...this.marks.rows.map((row) => row[i])));
    const best = places.sort((one, other) => most[other] - most[one]).slice(0, MAX_ROWS);
    return best.sort((one, other) => one - other);
  }

  #parts() {
    const chosen = this.#chosen();
    const table = make("div", { class: "scroll" }, this.#table(chosen));
    return [note(this.#caption(chosen.length)), table, this.readout];
  }

  #table(chosen) {
    const tell = ({ target }) => this.#tell(target.closest("[data-i]"));
    const press = (event) => this.#press(event);
    const heads = this.marks.words.map((word) =>
      make("th", { scope: "col" }, make("span", { dir: "auto" }, word.textContent)),
    );
    const table = make(
      "table",
      { role: "grid", "aria-label": "Heat map", mouseover: tell, focusin: tell, keydown: press },
      make("thead", {}, make("tr", {}, make("td"), ...heads)),
      make("tbody", {}, ...chosen.map((i) => this.#row(i))),
    );
    table.querySelector("[data-i]").tabIndex = 0;
    return table;
  }

  #caption(num) {
    const all = this.marks.source.length;
    const some = num < all ? `the ${num} of ${grouped(all)} lede words with most weight, ` : "";
    return `Weights, ${some}in per cent, by ${this.marks.view}; below 1 a cell is empty.`;
  }

  #row(i) {
    const state = this.marks.dropped.has(i) ? "dropped" : "used";
    const word = make("span", { dir: "auto", class: state }, this.marks.source[i].textContent);
    const cells = this.marks.rows.map((row, j) => this.#cell(row[i], i, j));
    return make("tr", {}, make("th", { scope: "row" }, word), ...cells);
  }

  #cell(share, i, j) {
    const cell = make("td", { tabindex: -1, "data-i": i, "data-j": j });
    if (share < MIN_SHARE) return cell;
    cell.className = "warm";
    cell.style.setProperty("--share", share);
    cell.textContent = Math.round(100 * share);
    return cell;
  }

  #tell(cell) {
    if (!cell) return;
    const { map, words, source } = this.marks;
    const { i, j } = cell.dataset;
    const spm = map.spm ? `SPM ${percent(map.spm[j][i], 1)}, ` : "";
    const values = `: ${spm}attention ${percent(map.attention[j][i], 1)}`;
    const [word, from] = [words[j], source[i]].map((span) => quoted(span.textContent));
    this.readout.replaceChildren(word, " from ", from, values);
  }

  #press(event) {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const [down, right] = steps[event.key];
    const cell = event.target;
    const row = event.currentTarget.rows[cell.parentNode.rowIndex + down];
    const next = row?.cells[cell.cellIndex + right];
    if (!next?.dataset.i) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

// --- results ---

function heading(answer, marks, number) {
  if (!answer.headline) return make("h3", { class: "headline none" }, NO_HEADLINE);
  const plain = () => make("h3", { class: "headline", dir: "auto" }, ...doubtedText(answer, number));
  const made = marks?.heading() ?? plain();
  if (answer.truncated) made.append(" …");
  return made;
}

function copyButton(text) {
  const copying = button({ class: "copy", click: () => copy(text, copying) }, "Copy");
  return copying;
}

/** The warnings; those of doubts are last, and have an id, for they describe words. */
function warningList({ warnings, doubts = [] }, number) {
  const item = ({ kind, message }, attributes = {}) =>
    make("li", attributes, make("strong", {}, `${WARNINGS[kind] ?? kind}: `), quoted(message));
  const others = doubts.length ? warnings.filter(({ kind }) => kind !== "doubt") : warnings;
  const doubted = doubts.map(({ words, why }, place) =>
    item({ kind: "doubt", message: `“${words}”: ${why}` }, { id: doubtId(number, place) }),
  );
  if (!others.length && !doubted.length) return "";
  const items = [...others.map((one) => item(one)), ...doubted];
  return make("ul", { class: "warnings", "aria-label": "Warnings" }, ...items);
}

/** The score of the headline, and the other headlines with theirs. */
function scoreTable(answer) {
  if (answer.score === null) return "";
  const others = (answer.alternatives ?? []).slice(1);
  const names = ["score", "per sub-word"];
  const isChecked = typeof answer.support === "number";
  if (isChecked) names.unshift("support");
  const heads = names.map((name) => make("th", { scope: "col" }, name));
  const rows = others.map((one) => scoreRow(alternativeButton(one), one));
  return make(
    "table",
    { class: "alternatives" },
    make("caption", {}, isChecked ? SUPPORT : "", SCORES),
    make("thead", {}, make("tr", {}, make("td"), ...heads)),
    make("tbody", {}, scoreRow("This headline", answer), ...rows),
  );
}

function scoreRow(first, { score, support }) {
  const digits = score.toFixed(2).replace(/^-(0\.00)?/, (_, zero) => zero ?? "−");
  const values = [digits, percent(Math.exp(score))];
  if (typeof support === "number") values.unshift(percent(support));
  const cells = values.map((value) => make("td", {}, value));
  return make("tr", {}, make("th", { scope: "row" }, first), ...cells);
}

function alternativeButton({ headline, truncated }) {
  const label = make("small", {}, "Copy");
  const text = quoted((headline || NO_HEADLINE) + (truncated ? " …" : ""));
  return button({ class: "alternative", click: () => copy(headline, label) }, text, " ", label);
}

/** The lede and, as a legend, how much of it was used. */
function ledePart(answer, marks) {
  if (!marks) return [make("p", { class: "lede", dir: "auto" }, answer.source ?? "")];
  const [lede, legend] = [marks.lede(), note()];
  const dropped = marks.dropped.size;
  const used = plural(marks.source.length - dropped, "word");
  legend.append(make("span", { class: "used" }, "used"), ` ${used} and marks, `);
  legend.append(make("span", { class: "dropped" }, "dropped"), ` ${grouped(dropped)}`);
  if (answer.warnings.some(({ kind }) => kind === "cut")) {
    lede.append(" …");
    legend.append("; the rest was not read");
  }
  return [lede, legend];
}

/** Everything about one answer. */
function resultBody(answer, number) {
  const explained = answer.headline && answer.alignment?.heat_map;
  const marks = explained ? new Marks(answer, number) : null;
  if (marks) shown.push(marks);
  const top = make("div", { class: "top" }, heading(answer, marks, number));
  if (answer.headline) top.append(copyButton(answer.headline));
  const body = make("div", { class: "body" }, top, supportNote(answer));
  body.append(warningList(answer, number));
  if (marks) body.append(marks.readout);
  body.append(...ledePart(answer, marks), scoreTable(answer));
  if (marks) body.append(marks.heat.details);
  return body;
}

/** One of several results; it folds, and is filled when it is first opened. */
function foldingResult(answer, number, total) {
  const short = make("strong", {}, quoted(answer.headline || NO_HEADLINE));
  if (answer.warnings.length) short.append(` (${plural(answer.warnings.length, "warning")})`);
  const summary = make("summary", {}, make("span", {}, `${number} of ${total} `), short);
  const details = make("details", { class: "result" }, summary);
  const fill = () => {
    if (details.open && details.children.length === 1) details.append(resultBody(answer, number));
    nameFold();
  };
  details.addEventListener("toggle", fill);
  details.open = number === 1 || total <= MAX_OPEN;
  fill();
  return details;
}

function show(answers, title) {
  shown = [];
  const several = answers.length > 1;
  const list = several
    ? answers.map((answer, place) => foldingResult(answer, place + 1, answers.length))
    : [make("article", { class: "result" }, resultBody(answers[0], 1))];
  $("results-title").textContent = title;
  $("list").replaceChildren(...list);
  $("fold").hidden = !several;
  nameFold();
  showViews(answers.map((answer) => answer.alignment?.heat_map).filter(Boolean));
}

/** The choice between SPM and attention, where there is one. */
function showViews(maps) {
  const hasSpm = maps.some((map) => map.spm);
  $("views").hidden = !maps.length;
  $("views").disabled = !hasSpm;
  $("no-spm").hidden = hasSpm;
  if (!hasSpm && maps.length) $("by-attention").checked = true;
}

const anyOpen = () => Boolean(document.querySelector("details.result[open]"));

function nameFold() {
  $("fold").textContent = anyOpen() ? "Close all" : "Open all";
}

function foldAll() {
  const open = !anyOpen();
  for (const one of $("list").children) one.open = open;
}

// --- the form ---

/** The ledes, each with the number of its line; empty lines do not count. */
function ledes() {
  const lines = $("text").value.split("\n");
  return lines.map((line, i) => ({ text: line.trim(), line: i + 1 })).filter(({ text }) => text);
}

/** Characters as the server counts them. */
const lengthOf = (text) => text.length - (text.match(SURROGATE_PAIRS)?.length ?? 0);

/** Why the server would refuse the ledes, or an empty string. */
function excess(given) {
  if (!limits) return "";
  const { texts, characters } = limits;
  const most = (number) => `the server takes ${grouped(number)}`;
  if (given.length > texts) return `${grouped(given.length)} ledes; ${most(texts)} at a time.`;
  const long = given.find(({ text }) => lengthOf(text) > characters);
  if (!long) return "";
  return `Line ${long.line} has ${grouped(lengthOf(long.text))} characters; ${most(characters)}.`;
}

function countText(given) {
  if (!limits) return "";
  const [texts, characters] = [limits.texts, limits.characters].map(grouped);
  if (!given.length) return `Up to ${texts} ledes of ${characters} characters.`;
  if (given.length > 1) return `${given.length} of ${texts} ledes.`;
  return `${grouped(lengthOf(given[0].text))} of ${characters} characters.`;
}

function count() {
  const given = ledes();
  const problem = excess(given);
  $("count").textContent = problem || countText(given);
  $("count").classList.toggle("over", Boolean(problem));
  const name = given.length > 1 ? `Write ${grouped(given.length)} headlines` : "Write headline";
  $("write").textContent = running && action === write ? "Writing …" : name;
  $("check").textContent = running && action === check ? "Checking …" : "Check";
}

/** Fill in examples; below what the user has written, if that is not an example. */
function fillIn(chosen) {
  const own = ledes().some(({ text }) => !examples.includes(text));
  $("text").value = [...(own ? [$("text").value.trimEnd()] : []), ...chosen].join("\n");
  clearError();
  count();
}

function showExamples() {
  const chips = examples.map((lede) => {
    const name = `${lede.split(/\s+/).slice(0, 3).join(" ")} …`;
    return button({ title: lede, click: () => fillIn([lede]) }, name);
  });
  const all = button({ click: () => fillIn(examples) }, `All ${examples.length}`);
  $("examples").append(...chips, all);
  $("examples").hidden = false;
}

const numberOf = (id) => ($(id).value ? $(id).valueAsNumber : null);

/** Whether the settings are valid; if not, the browser says why. */
function settingsAreValid() {
  const { beam, n_best, min_length, max_length } = request([]);
  const tooShort = max_length !== null && max_length < min_length;
  $("n-best").setCustomValidity(n_best > beam ? "At most as many as the beam." : "");
  $("max-length").setCustomValidity(tooShort ? "Less than the minimum length." : "");
  if ($("form").checkValidity()) return true;
  $("settings").open = true; // so that the browser can show its message
  return $("form").reportValidity();
}

function request(given) {
  return {
    texts: given.map(({ text }) => text),
    beam: numberOf("beam"),
    n_best: numberOf("n-best"),
    explain: true,
    heat_map: true,
    min_length: numberOf("min-length"),
    max_length: numberOf("max-length"),
  };
}

function setBusy(controller) {
  running = controller;
  // Not disabled, for a disabled button loses the focus.
  for (const id of ["write", "check"]) $(id).setAttribute("aria-disabled", Boolean(running));
  if (!running && document.activeElement === $("cancel")) $("write").focus();
  $("cancel").hidden = !running;
  $("results").setAttribute("aria-busy", Boolean(running));
  count();
}

/** Say what is wrong with the ledes, if anything; whether something is. */
function refuseLedes(problem) {
  if (!problem) return false;
  fail(problem);
  $("text").setAttribute("aria-invalid", "true");
  $("text").focus();
  return true;
}

/** Ask the server; `tell` gets the answer and the seconds that it took. */
async function send(path, body, doing, tell) {
  waitsForToken = false;
  const began = performance.now();
  setBusy(new AbortController());
  say(doing);
  try {
    const answer = await ask(path, body, running.signal);
    tell(answer, ((performance.now() - began) / 1000).toFixed(1));
    bringIntoView($("results"));
  } catch (error) {
    failed(error);
  } finally {
    setBusy(null);
  }
}

async function write() {
  if (running) return;
  action = write;
  clearError();
  const given = ledes();
  const problem = given.length ? excess(given) : "Write or paste a lede first.";
  if (refuseLedes(problem) || !settingsAreValid()) return;
  const doing = `Writing ${plural(given.length, "headline")} …`;
  await send("v1/headlines", request(given), doing, ({ headlines }, seconds) => {
    show(headlines, headlines.length > 1 ? "Headlines" : "Headline");
    const only = headlines.length > 1 ? "." : quoted(`: ${headlines[0].headline}`);
    say(`${plural(headlines.length, "headline")} in ${seconds} s`, only);
  });
}

/** Check one's own headline against the lede. */
async function check() {
  if (running) return;
  action = check;
  clearError();
  const given = ledes();
  const many = `A headline is checked against one lede; there are ${grouped(given.length)}.`;
  const problem = given.length > 1 ? many : excess(given);
  if (refuseLedes(given.length ? problem : "Write or paste a lede first.")) return;
  const [lede, headline] = [given[0].text, $("own").value.trim()];
  if (!headline) {
    fail("Write or paste a headline first.");
    $("own").focus();
    return;
  }
  await send("v1/check", { lede, headline }, "Checking …", ({ checks: [found] }, seconds) => {
    show([{ source: lede, headline, score: null, truncated: false, warnings: [], ...found }], "Check");
    const { support } = found;
    say(support === null ? NOTHING_TO_CHECK : `Support ${percent(support)}, in ${seconds} s`);
  });
}

/** On a phone the headlines are below the form. */
function bringIntoView(element) {
  const { top } = element.getBoundingClientRect();
  if (top < 0 || top > 0.6 * innerHeight) element.scrollIntoView();
}

function keys(event) {
  if (event.key === "Escape") running?.abort();
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  if (event.target === $("own")) check();
  else write();
}

// --- start ---

/** Ask for the model; false if a token is needed. */
async function describeModel() {
  try {
    showModel(await ask("v1/model"));
  } catch (error) {
    if (error.status === 401) showTokenForm();
    return error.status !== 401;
  }
  return true;
}

/** Show the model in the footer, and its limits in the form. */
function showModel(model) {
  limits = model.limits;
  setMax("beam", limits.beam);
  setMax("n-best", Math.min(limits.n_best, limits.beam));
  $("model").textContent = [
    model.system,
    plural(model.parameters, "parameter"),
    plural(model.vocabulary, "sub-word"),
    `text profile ${model.profile}`,
    `${model.precision} on ${model.device}`,
    `ledeline ${model.version}`,
  ].join(" · ");
  $("card").hidden = !model.card;
  $("card-text").textContent = model.card;
  count();
}

function setMax(id, most) {
  const input = $(id);
  input.max = most;
  if (input.valueAsNumber > most) input.value = most;
  $(`${id}-max`).textContent = most;
}

/** Show the examples; without them the form works, too. */
async function showExampleAnswer() {
  const given = await ask("page/examples.json").catch(() => null);
  if (!given) return;
  examples = given.ledes;
  showExamples();
  if (document.querySelector(".result")) return; // a headline was written meanwhile
  show([given.answer], "An example");
  // Pin the word with the clearest source, to show what marks are.
  for (const marks of shown) {
    const most = marks.rows.map((row) => Math.max(...row));
    marks.pin(most.indexOf(Math.max(...most)));
  }
}

token = keptToken();
document.addEventListener("keydown", keys);
on("form", "submit", (event) => {
  event.preventDefault();
  write();
});
on("check-form", "submit", (event) => {
  event.preventDefault();
  check();
});
on("text", "input", count);
on("token-form", "submit", useToken);
on("cancel", "click", () => running?.abort());
on("fold", "click", foldAll);
on("views", "change", () => shown.forEach((marks) => marks.redraw()));
if (/Mac|iP/.test(navigator.platform)) $("modifier").textContent = "⌘";
describeModel();
showExampleAnswer();
count();
