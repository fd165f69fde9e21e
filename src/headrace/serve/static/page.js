// The live page: reads the server's events, draws them, and sends a person's word about reviews.

const KINDS = ["allow", "review", "decline"];
const HEIGHT = { money: 230, small: 170 };
const MOST_POINTS = 900;

const by_id = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" });

let key = key_of_link() ?? sessionStorage.getItem("key");
let points = [];
let snapshot = null;

// The key comes in the fragment, which no server sees, and leaves the address at once.
function key_of_link() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    history.replaceState(null, "", location.pathname);
    sessionStorage.setItem("key", given);
  }
  return given;
}

function element(tag, classes, text) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  if (text !== undefined) made.textContent = text;
  return made;
}

function tone(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// ---- the stream of snapshots: fetch instead of EventSource, which cannot send the key

async function follow() {
  for (;;) {
    try {
      const answer = await fetch("/live", { headers: { "X-Api-Key": key ?? "" } });
      if (answer.status === 401) return ask_key();
      by_id("key").hidden = true;
      await read_events(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch {
      // the server is away; it may come back
    }
    show_parts(null);
    await new Promise((again) => setTimeout(again, 1000));
  }
}

async function read_events(reader) {
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n").map((line) => line.slice(line.indexOf(":") + 2));
      take(name, JSON.parse(data));
    }
  }
}

function take(name, told) {
  if (name === "history") {
    points = told;
    return;
  }
  snapshot = told;
  if (told.point && told.point.at !== points.at(-1)?.at) points.push(told.point);
  points = points.slice(-MOST_POINTS);
  document.querySelector("main").hidden = false;
  show();
}

function ask_key() {
  document.querySelector("main").hidden = true;
  by_id("key").hidden = false;
  by_id("key-text").focus();
}

by_id("key").addEventListener("submit", (event) => {
  event.preventDefault();
  key = by_id("key-text").value.trim();
  sessionStorage.setItem("key", key);
  follow();
});

// ---- figures and parts

function milliseconds(value) {
  if (value === null) return ["–"];
  return [value < 10 ? value.toFixed(1) : whole.format(value), element("small", "", " ms")];
}

function show() {
  const { totals, latency, parts, names } = snapshot;
  const many = `${names.ask.toLowerCase()}s`;
  const all = KINDS.concat(Object.keys(totals.decisions).filter((kind) => !KINDS.includes(kind)));
  const sum = Object.values(totals.decisions).reduce((a, b) => a + b, 0);
  const last = points.slice(-5);
  by_id("service").textContent = names.service;
  by_id("rate-title").textContent = `${many} a second`;
  by_id("rate-chart-title").textContent = `${many[0].toUpperCase()}${many.slice(1)} a second`;
  by_id("rate").textContent = whole.format(last.reduce((a, p) => a + p.events, 0) / Math.max(1, last.length));
  by_id("total").textContent = `${whole.format(sum)} decided`;
  by_id("p50").replaceChildren(...milliseconds(latency.p50));
  by_id("p99").replaceChildren(...milliseconds(latency.p99));
  by_id("degraded").textContent = whole.format(totals.degraded);
  by_id("degraded-share").textContent = totals.asked
    ? `${((100 * totals.degraded) / totals.asked).toFixed(2)} % of answers`
    : "answered without the flow";
  by_id("empty").textContent = sum ? "" : `waiting for ${many}`;
  for (const part of document.querySelectorAll(".charts, .lists")) part.hidden = !sum && !snapshot.alerts.length;
  by_id("shares").replaceChildren(...all.filter((kind) => totals.decisions[kind]).map((kind) => {
    const share = element("span", kind);
    share.style.flexGrow = totals.decisions[kind];
    share.style.background = "var(--tone, var(--fraud))";
    return share;
  }));
  by_id("kinds").replaceChildren(...all.map((kind) => {
    const line = element("li", kind, kind);
    const count = totals.decisions[kind] ?? 0;
    line.append(element("b", "", whole.format(count)), sum ? `${((100 * count) / sum).toFixed(1)} %` : "");
    return line;
  }));
  show_parts(parts, totals.twins);
  show_alerts();
  show_reviews();
  draw();
}

function show_parts(parts, twins) {
  const line = (good, text) => element("li", good === null ? "" : good ? "good" : "bad", text);
  if (!parts) {
    by_id("parts").replaceChildren(line(false, "the service does not answer"));
    return;
  }
  const answers = parts.answers_per_event;
  const shown = [
    line(parts.broker, parts.broker ? "broker" : "the broker is away"),
    line(parts.reader, parts.reader ? "answers are read" : "answers are not read"),
    line(answers === null ? null : true, answers === null ? "no answers now" : `${answers.toFixed(1)} answers each`),
  ];
  if (twins.disagreed) shown.push(line(false, `${whole.format(twins.disagreed)} twins disagree`));
  shown.push(line(null, `${parts.in_flight} waiting`));
  by_id("parts").replaceChildren(...shown);
}

// ---- lists

function entry(row, ...buttons) {
  const { id, time, amount } = snapshot.names;
  const line = element("li", row.decision);
  const sum = row[amount] === undefined ? "" : Number(row[amount]).toLocaleString("en", { minimumFractionDigits: 2 });
  const what = element("span", "what", row[id]);
  if (row[time]) what.append(element("time", "", clock.format(new Date(row[time]))));
  const below = element("div", "more");
  below.append(element("span", "", (row.reasons ?? []).join(", ") || "no reason given"), ...buttons);
  line.append(element("span", "tag", row.decision), what, element("span", "amount", sum), below);
  return line;
}

function show_alerts() {
  const rows = snapshot.alerts.slice(0, 7).map((row) => entry(row));
  by_id("alerts").replaceChildren(...(rows.length ? rows : [element("li", "none", "none so far")]));
}

function show_reviews() {
  const { waiting, due, labelled } = snapshot.reviews;
  by_id("waiting").textContent = waiting ? `· ${whole.format(waiting)} wait` : "";
  if (by_id("reviews").matches(":hover, :focus-within")) return; // nothing moves under the hand
  const rows = due.slice(0, 6).map((row) => {
    const buttons = element("span");
    buttons.append(
      button("fraud", "decline", () => send(row, "label", { fraud: true })),
      button("genuine", "allow", () => send(row, "label", { fraud: false })),
      button("later", "", () => send(row, "snooze", { until: new Date(Date.now() + 3_600_000).toISOString() })),
    );
    return entry(row, buttons);
  });
  const said = labelled.map((row) => {
    const line = entry(row, row.fraud
      ? button("no, genuine", "allow", () => send(row, "label", { fraud: false }))
      : button("no, fraud", "decline", () => send(row, "label", { fraud: true })));
    line.querySelector(".more span").textContent = `${row.fraud ? "fraud" : "genuine"}, said ${row.by}`;
    return line;
  });
  by_id("reviews").replaceChildren(...(rows.length ? rows : [element("li", "none", "nothing waits")]), ...said);
}

function button(text, classes, act) {
  const made = element("button", classes, text);
  made.type = "button";
  made.addEventListener("click", async () => {
    made.disabled = true;
    if (await act()) made.closest("li").remove();
    else made.disabled = false;
  });
  return made;
}

async function send(row, verb, said) {
  const answer = await fetch(`/reviews/${encodeURIComponent(row[snapshot.names.id])}/${verb}`, {
    method: "POST",
    headers: { "X-Api-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify({ ...said, by: by_id("by").value.trim() || "page" }),
  });
  return answer.ok || answer.status === 404; // 404: somebody else was faster
}

by_id("by").value = localStorage.getItem("by") ?? "";
by_id("by").addEventListener("change", () => localStorage.setItem("by", by_id("by").value.trim()));

// ---- charts, made anew when the colours change

let charts = {};
const from_zero = { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.08] };

function axes(unit = (value) => short.format(value)) {
  const style = { stroke: tone("quiet"), grid: { stroke: tone("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return [
    { ...style, grid: { show: false }, space: 80, size: 26 },
    { ...style, size: 46, space: 34, values: (_, splits) => splits.map((value) => (value === null ? "" : unit(value))) },
  ];
}

function chart(place, height, series, more = {}) {
  const box = by_id(place);
  return new uPlot({
    width: box.clientWidth || 300,
    height,
    legend: { show: false },
    cursor: { show: false },
    axes: axes(),
    scales: { x: { range: (_, from, to) => [Math.min(from, to - 60), to] }, y: from_zero },
    series: [{}, ...series.map((line) => ({ width: 2, points: { show: false }, ...line }))],
    ...more,
  }, [[], ...series.map(() => [])], box);
}

function make_charts() {
  Object.values(charts).forEach((made) => made.destroy());
  const flow = { stroke: tone("flow") };
  const batch = { stroke: tone("batch") };
  const times = axes();
  times[0].values = (_, splits) => splits.map((at) => clock.format(at * 1000));
  const classes = axes();
  classes[0].values = (_, splits) => splits.map((place) => snapshot?.latency.bounds[place] ?? "");
  classes[0].splits = () => [2, 4, 7, 10, 13, 16, 19, 22];
  charts = {
    money: chart("money", HEIGHT.money, [{ stroke: tone("fraud"), dash: [5, 5] }, batch, { ...flow, fill: tone("flow-wash") }], { axes: times }),
    rate: chart("rate-chart", HEIGHT.small, [{ ...flow, fill: tone("flow-wash") }], { axes: times }),
    latency: chart("latency", HEIGHT.small, [flow, batch], { axes: times }),
    histogram: chart("histogram", HEIGHT.small, [
      { stroke: tone("flow"), fill: tone("flow-wash"), width: 1, paths: uPlot.paths.bars({ size: [0.9] }) },
    ], { axes: classes, scales: { x: { time: false, range: [-0.6, 23.6] }, y: from_zero } }),
  };
}

function draw() {
  if (document.querySelector(".charts").hidden) return;
  if (!charts.money) make_charts();
  const at = points.map((p) => p.at);
  const line = (name) => points.map((p) => p[name]);
  charts.money.setData([at, line("fraud"), line("saved_by_batch"), line("saved")]);
  charts.rate.setData([at, line("events")]);
  charts.latency.setData([at, line("p50"), line("p99")]);
  charts.histogram.setData([snapshot.latency.counts.map((_, place) => place), snapshot.latency.counts]);
  const now = points.at(-1);
  by_id("money-figure").hidden = !snapshot.names.money;
  if (now) {
    const says = by_id("money-says");
    says.replaceChildren("of ", element("b", "", whole.format(now.fraud)), " that fraud asked for, ",
      element("b", "", whole.format(now.saved)), " stopped at once");
    if (snapshot.names.batch) says.append(", ", element("b", "", whole.format(now.saved_by_batch)), " by the batch job");
  }
}

addEventListener("resize", () => {
  for (const [name, made] of Object.entries(charts)) {
    made.setSize({ width: made.root.parentElement.clientWidth, height: name === "money" ? HEIGHT.money : HEIGHT.small });
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  make_charts();
  if (snapshot) draw();
});

follow();
