"use strict";
/* The page's contents are parts that the server makes. They are fetched with the token of this tab, put into the frame,
   and fetched again when the journal has news. No text of others is ever made into HTML here. */
(() => {
  const root = document.documentElement.dataset.root;
  const isMounted = Boolean(document.documentElement.dataset.mounted);
  const texts = JSON.parse(document.getElementById("texts").textContent);
  const main = document.getElementById("main");
  const connection = document.getElementById("connection");
  const TOKEN = `callboard-token:${root}`;
  const STEADY_MS = 500; // a button that was somewhere else this short ago is not pressed: the person meant another one
  const RELOAD_MS = 400;
  const inside = (path) => `${root}/${path.replace(/^\//, "")}`;
  const token = () => sessionStorage.getItem(TOKEN) || "";

  async function call(path, options = {}) {
    const headers = { "x-callboard-token": token(), ...options.headers };
    const response = await fetch(path, { ...options, headers, credentials: "same-origin" });
    if (response.status === 401) {
      sessionStorage.removeItem(TOKEN);
      connection.textContent = texts.sign_in_elsewhere;
      throw new Error(texts.sign_in_elsewhere);
    }
    if (!response.ok) throw new Error(`${texts.failed}: ${await response.text()}`);
    return response;
  }

  const post = (path, fields) => call(path, { method: "POST", body: JSON.stringify(fields) });

  function say(text) {
    document.getElementById("message").textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => { document.getElementById("message").textContent = ""; }, 8000);
  }

  /* Sign in by the link's secret, which stands behind the # of the address and is taken out of it. */
  const isLink = () => location.hash.length > 40;
  async function signIn() {
    const hasLink = isLink();
    const link = location.hash.slice(1);
    if (hasLink) history.replaceState(null, "", location.pathname + location.search);
    if (!hasLink && (token() || !isMounted)) return Boolean(token());
    const response = await fetch(inside("session"), { method: "POST", body: JSON.stringify({ link }) });
    if (!response.ok) {
      if (token()) return true;
      throw new Error(await response.text());
    }
    sessionStorage.setItem(TOKEN, (await response.json()).token);
    return true;
  }

  /* Times in the reader's zone, durations, and pictures, which need the token. */
  const pad = (number) => String(number).padStart(2, "0");
  function duration(seconds) {
    if (seconds < 60) return texts.seconds.replace(/\{seconds[^}]*\}/, Math.max(0, seconds).toFixed(1));
    const whole = Math.round(seconds);
    const hours = Math.floor(whole / 3600);
    return `${hours ? `${hours}:` : ""}${hours ? pad(Math.floor(whole / 60) % 60) : Math.floor(whole / 60)}:${pad(whole % 60)}`;
  }
  const pictures = new Map();
  async function showPicture(image) {
    const digest = image.dataset.picture;
    if (!pictures.has(digest)) {
      pictures.set(digest, call(inside(`pictures/${digest}`)).then((response) => response.blob()).then(URL.createObjectURL));
      if (pictures.size > 100) {
        const [oldest, url] = pictures.entries().next().value;
        pictures.delete(oldest);
        url.then(URL.revokeObjectURL, () => {});
      }
    }
    try { image.src = await pictures.get(digest); } catch { pictures.delete(digest); }
  }
  const visible = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { visible.unobserve(entry.target); showPicture(entry.target); }
  });
  function finish(part) {
    for (const time of part.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      const isToday = at.toDateString() === new Date().toDateString();
      time.textContent = isToday ? at.toLocaleTimeString() : at.toLocaleString();
      time.title = at.toLocaleString(undefined, { timeZoneName: "short" });
    }
    for (const span of part.querySelectorAll("[data-seconds]")) span.textContent = duration(Number(span.dataset.seconds));
    for (const image of part.querySelectorAll("img[data-picture]:not([src])")) visible.observe(image);
    for (const input of part.querySelectorAll("input[data-moment]")) {
      if (!input.dataset.moment) continue;
      const at = new Date(1000 * Number(input.dataset.moment) - (input.dataset.end === undefined ? 0 : 86400000));
      input.value = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
    }
    tick();
  }
  function tick() {
    for (const span of document.querySelectorAll("[data-since]")) {
      span.textContent = duration((Date.now() - new Date(span.dataset.since)) / 1000);
    }
  }
  setInterval(tick, 1000);

  /* Put a new part in place of an old one, element by element, so that what is open, typed or focused stays. */
  function keyOf(node) {
    if (node.nodeType !== 1) return "";
    const { entry, ask, task } = node.dataset;
    return entry || ask || task || node.id || node.getAttribute("aria-labelledby") || "";
  }
  function sameKind(old, fresh) {
    return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
  }
  function morph(old, fresh) {
    if (old.nodeType !== 1) { if (old.data !== fresh.data) old.data = fresh.data; return; }
    if (old.dataset.keep !== undefined) {
      if (old.type === "range") keepSlider(old, fresh);
      return;
    }
    const dynamic = { DETAILS: "open", IMG: "src", BUTTON: "disabled", TIME: "title" }[old.nodeName];
    for (const { name } of [...old.attributes]) if (name !== dynamic && !fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) {
      if (name !== dynamic && old.getAttribute(name) !== value) {
        old.setAttribute(name, value);
        if (name === "data-picture") { old.removeAttribute("src"); }
      }
    }
    if (["TIME", "OUTPUT", "SVG"].includes(old.nodeName)) return;
    if (old.matches("[data-since], [data-seconds]")) return;
    morphChildren(old, fresh);
  }
  function morphChildren(old, fresh) {
    const rest = [...fresh.childNodes];
    const keyed = new Map([...old.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
    let at = old.firstChild;
    for (const node of rest) {
      const match = keyOf(node) ? keyed.get(keyOf(node)) : at && sameKind(at, node) ? at : null;
      if (!match || match.nodeName !== node.nodeName) { old.insertBefore(node, at); continue; }
      if (match !== at) old.insertBefore(match, at); else at = at.nextSibling;
      morph(match, node);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }
  function keepSlider(old, fresh) {
    const isLast = old.value === old.max;
    old.max = fresh.max;
    if (isLast) old.value = old.max;
  }

  /* Load the part of the present address. */
  let shown = "";
  let loads = 0;
  let shownLoad = 0;
  async function load(isNew) {
    const path = location.pathname + location.search;
    const number = ++loads;
    const html = await (await call(path)).text();
    if (path !== location.pathname + location.search || number < shownLoad) return; // a later one was faster
    shownLoad = number;
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    for (const link of fresh.querySelectorAll('a[href^="/"]')) link.setAttribute("href", inside(link.getAttribute("href")));
    if (isNew || shown !== path) { main.replaceChildren(...fresh.childNodes); main.focus({ preventScroll: true }); } else morphChildren(main, fresh);
    shown = path;
    finish(main);
    const heading = main.querySelector("h1");
    document.title = `${heading ? heading.textContent.slice(0, 80) : path} · ${texts.title}`; // desktops refuse such windows
    for (const link of document.querySelectorAll("nav a")) {
      link.toggleAttribute("aria-current", new URL(link.href).pathname.replace(/\/$/, "") === location.pathname.replace(/\/$/, ""));
    }
    slide();
    watchButtons();
    const machine = document.getElementById("machine");
    if (machine && machine.dataset.shows) await showMachine(machine);
  }
  async function show(isNew = true) {
    try { await load(isNew); } catch (error) {
      if (isNew) { const text = document.createElement("p"); text.textContent = error.message; main.replaceChildren(text); } else say(error.message);
    }
  }
  function go(url) {
    history.pushState(null, "", url);
    show();
    window.scrollTo(0, 0);
  }
  function openTab(link) {
    window.open(link.href); // a tab that the browser opens by itself would not get the token
  }
  let reload = 0;
  let hasNews = false;
  function news() {
    hasNews = true;
    if (!reload) reload = setTimeout(refresh, RELOAD_MS);
  }
  async function refresh() { // one at a time: a long history takes the server a second, and a task has many events
    hasNews = false;
    const begin = performance.now();
    await show(false);
    countWaiting();
    reload = hasNews ? setTimeout(refresh, Math.max(RELOAD_MS, performance.now() - begin)) : 0;
  }

  /* The number of requests that wait, beside the name of their page. */
  async function countWaiting() {
    try {
      const isShown = shown === inside("waiting"); // then it was loaded just now
      const page = isShown ? main : new DOMParser().parseFromString(await (await call(inside("waiting"))).text(), "text/html");
      const count = page.querySelectorAll("[data-ask]").length;
      const badge = document.getElementById("waiting-count");
      badge.textContent = count;
      badge.hidden = !count;
    } catch { /* the next event counts again */ }
  }

  /* Events of the journal. The number of the last one is told after a lost connection, so that none is missed. */
  let lastId = "";
  async function follow() {
    for (let pause = 500; ; pause = Math.min(8000, pause * 2)) {
      let hasEnded = false; // a feed ends now and then; only one that can't be opened again is lost
      try {
        const headers = lastId ? { "last-event-id": lastId } : {};
        const response = await call(inside("events"), { headers });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        connection.textContent = texts.connected;
        news();
        pause = 250;
        for (let text = ""; ;) {
          const { value, done } = await reader.read();
          if (done) { hasEnded = true; break; }
          text += value;
          const blocks = text.split("\n\n");
          text = blocks.pop();
          for (const block of blocks) take(block);
        }
      } catch { if (!token()) return; }
      if (!hasEnded) connection.textContent = texts.lost;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  function take(block) {
    let data = null;
    for (const row of block.split("\n")) {
      if (row.startsWith("id: ")) lastId = row.slice(4);
      if (row.startsWith("data: ")) data = JSON.parse(row.slice(6));
    }
    if (data === null || !data.name) return;
    const task = main.querySelector("article[data-task]");
    if (!task || task.dataset.task === data.task) news(); else countSoon();
  }
  let counting = 0;
  function countSoon() {
    if (!counting) counting = setTimeout(() => { counting = 0; countWaiting(); }, RELOAD_MS);
  }

  /* A button that answers is pressed only where it stood for half a second. */
  const places = new WeakMap();
  function placeOf(button) {
    const box = button.getBoundingClientRect();
    return `${Math.round(box.left)},${Math.round(box.top + window.scrollY)}`;
  }
  function watchButtons() {
    if (watchButtons.running) return;
    watchButtons.running = true;
    const look = () => {
      const buttons = main.querySelectorAll("[data-settles]");
      for (const button of buttons) {
        const place = placeOf(button);
        const former = places.get(button);
        if (!former || former.place !== place) { places.set(button, { place, since: performance.now() }); button.disabled = true; }
        else if (button.disabled && performance.now() - former.since >= STEADY_MS) button.disabled = false;
      }
      if (buttons.length) requestAnimationFrame(look); else watchButtons.running = false;
    };
    look();
  }
  const isSteady = (button) => {
    const former = places.get(button);
    return former && former.place === placeOf(button) && performance.now() - former.since >= STEADY_MS && !button.disabled;
  };

  async function answer(form, button) {
    if (!isSteady(button)) { say(texts.too_early); return; }
    const data = new FormData(form);
    const fields = { verdict: button.value };
    if (button.value === "answer") {
      fields.texts = [...form.querySelectorAll("fieldset")].map((_, number) => data.get(`text-${number + 1}`));
    } else {
      fields.remember = data.has("remember");
      fields.reason = data.get("reason");
    }
    try { await post(inside(form.dataset.answer), fields); form.closest("[data-ask]").remove(); say(texts[`said_${button.value}`]); } catch (error) { say(error.message); }
    news();
  }

  /* The slider shows a task's history up to one of its entries. */
  function slide(event) {
    const slider = document.getElementById("slider");
    if (!slider) return;
    const entries = [...main.querySelectorAll("[data-entry]")];
    const last = Number(slider.value);
    entries.forEach((entry, number) => entry.classList.toggle("later", number >= last));
    const present = entries[last - 1];
    slider.nextElementSibling.textContent = present ? present.dataset.entry : "";
    if (event && present) { present.querySelector("details").open = true; present.scrollIntoView({ block: "nearest" }); }
  }

  async function showMachine(part) {
    const run = part.dataset.shows;
    const task = part.closest("article[data-task]").dataset.task;
    const html = await (await call(inside(`tasks/${encodeURIComponent(task)}/runs/${encodeURIComponent(run)}`))).text();
    if (part.dataset.shows !== run) return;
    part.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  }

  const opened = new WeakSet();
  async function showPart(details) {
    const part = details.querySelector("div");
    opened.add(details);
    try {
      const html = await (await call(inside(details.dataset.part))).text();
      part.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
      finish(part);
    } catch (error) { opened.delete(details); part.textContent = error.message; }
  }

  async function showRulings(form) {
    const response = await post(inside(form.dataset.rules), { rules: form.elements.rules.value });
    const html = new DOMParser().parseFromString(await response.text(), "text/html");
    document.getElementById("rulings").replaceChildren(...html.body.childNodes);
  }

  async function showEntry(number) {
    const isShown = () => document.getElementById(`entry-${number}`);
    if (!isShown()) {
      const url = new URL(location.href);
      url.searchParams.set("until", number);
      history.pushState(null, "", url);
      await show();
    }
    const slider = document.getElementById("slider");
    slider.value = slider.max;
    slide();
    const summary = isShown().querySelector("summary");
    summary.parentElement.open = true;
    summary.scrollIntoView({ block: "center" });
    summary.focus();
  }

  document.addEventListener("click", (event) => {
    const element = event.target.closest("[data-copy], [data-entry-link], [data-post], [data-query], [data-run], [data-settles], a[href]");
    if (!element) return;
    if (element.dataset.copy !== undefined) {
      navigator.clipboard.writeText(element.dataset.copy).then(() => say(`${texts.copied}: ${element.dataset.copy}`), (error) => say(error.message));
    } else if (element.dataset.post) {
      if (!element.dataset.sure || confirm(element.dataset.sure)) post(inside(element.dataset.post), {}).then(news, (error) => say(error.message));
    } else if (element.dataset.run !== undefined) {
      event.preventDefault();
      const machine = document.getElementById("machine");
      machine.dataset.shows = element.dataset.run;
      showMachine(machine).then(() => machine.scrollIntoView({ block: "nearest" }), (error) => say(error.message));
    } else if (element.dataset.entryLink !== undefined) {
      event.preventDefault();
      showEntry(element.dataset.entryLink).catch((error) => say(error.message));
    } else if (element.dataset.query !== undefined) {
      const [name, value] = element.dataset.query.split("=");
      const url = new URL(location.href);
      if (value) url.searchParams.set(name, value); else url.searchParams.delete(name);
      go(url);
    } else if (element.dataset.settles !== undefined) {
      event.preventDefault();
      if (element.value === "reject" || element.form.reportValidity()) answer(element.form, element);
    } else if (element.origin === location.origin && !element.hash) {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || event.shiftKey) openTab(element); else go(element.href);
    }
  });
  document.addEventListener("auxclick", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.button !== 1) return;
    event.preventDefault();
    openTab(link);
  });
  document.addEventListener("toggle", (event) => {
    const details = event.target;
    if (details.open && details.dataset.part && !opened.has(details)) showPart(details);
  }, true);
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.dataset.rules) { showRulings(event.target).catch((error) => say(error.message)); return; }
    if (event.target.dataset.filter === undefined) return;
    const url = new URL(inside("/"), location.href);
    for (const [name, value] of new FormData(event.target)) {
      const input = event.target.elements[name];
      const day = input.type === "date" && value ? new Date(`${value}T00:00:00`) : null;
      if (day && input.dataset.end !== undefined) day.setDate(day.getDate() + 1);
      if (value) url.searchParams.set(name, day ? day.getTime() / 1000 : value);
    }
    go(url);
  });
  document.addEventListener("input", (event) => { if (event.target.id === "slider") slide(event); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range]), select, textarea")) return;
    const rows = [...main.querySelectorAll("[data-row], .ask, .history summary")].filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement);
    const ask = document.activeElement.closest(".ask");
    const press = (value) => { const button = ask && ask.querySelector(`[data-settles][value="${value}"]`); if (button) answer(button.form, button); };
    if (event.key === "j" && rows.length) rows[Math.min(rows.length - 1, at + 1)].focus();
    else if (event.key === "k" && rows.length) rows[Math.max(0, at - 1)].focus();
    else if (event.key === "a") press("approve");
    else if (event.key === "r") press("reject");
    else return;
    event.preventDefault();
  });
  window.addEventListener("popstate", () => { if (!isLink()) show(); });
  window.addEventListener("hashchange", () => { if (isLink()) location.reload(); }); // a newer link, in this tab

  const theme = localStorage.getItem("callboard-theme");
  if (theme) document.documentElement.classList.add(theme);
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const list = document.documentElement.classList;
    const present = list.contains("dark") ? "dark" : list.contains("light") ? "light" : isDark ? "dark" : "light";
    const next = present === "dark" ? "light" : "dark";
    list.remove("dark", "light");
    list.add(next);
    localStorage.setItem("callboard-theme", next);
  });

  signIn().then((isSignedIn) => {
    if (!isSignedIn) throw new Error(texts.sign_in_first);
    return show();
  }).then(() => { if (token()) { follow(); countWaiting(); } }, (error) => { main.textContent = error.message; });
})();
