// What every page needs: copy buttons, the focus on a form's faults, and ages
// that go on by the manager's clock.
(() => {
  "use strict";

  // A button with data-copy="ID" copies the text of the element with that id.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const label = button.querySelector("span") || button;
    const word = label.dataset.word || (label.dataset.word = label.textContent);
    let done = "Copied";
    try {
      await navigator.clipboard.writeText("value" in source ? source.value : source.textContent.trim());
    } catch { // no clipboard without TLS: leave it selected
      getSelection().selectAllChildren(source);
      done = "Press Ctrl+C";
    }
    label.textContent = document.getElementById("said").textContent = done;
    setTimeout(() => { label.textContent = word; document.getElementById("said").textContent = ""; }, 2000);
  });

  // "/" goes to the search of a page.
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector('[aria-keyshortcuts="/"]');
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !search || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    search.focus();
    search.select();
  });

  document.querySelector(".faults")?.focus();

  // What was typed outlives a session that has ended meanwhile: it is kept in this
  // tab while its person signs in again, and put back, not sent. Passwords are not.
  const user = document.querySelector(".who a")?.textContent;
  const key = "typed";
  const inputs = (form) => [...form.elements].filter((e) => e.name && e.type !== "password");
  const state = (e) => [e.name, e.value, Boolean(e.checked)];
  const keep = (form, away) => {
    sessionStorage.setItem(key, JSON.stringify({ user, away, at: location.pathname + location.search, form: [...document.forms].indexOf(form), fields: inputs(form).map(state) }));
  };
  const changed = (e) => e.type !== "hidden" && (e.options ? [...e.options].some((o) => o.selected !== o.defaultSelected) : e.checked !== e.defaultChecked || e.value !== e.defaultValue);
  window.keepTyped = () => {
    const form = [...document.forms].find((f) => inputs(f).some(changed));
    if (form) keep(form, true);
  };
  document.addEventListener("submit", (event) => { if (user && event.target.method === "post") keep(event.target, false); });
  const putBack = () => {
    const kept = JSON.parse(sessionStorage.getItem(key));
    if (!kept) return;
    if (!user) { // to be signed in: what was sent was not taken
      sessionStorage.setItem(key, JSON.stringify({ ...kept, away: true }));
      return;
    }
    sessionStorage.removeItem(key);
    const form = document.forms[kept.form];
    if (!kept.away || kept.user !== user || kept.at !== location.pathname + location.search || !form) return;
    const fields = inputs(form);
    if (fields.map((e) => e.name).join() !== kept.fields.map(([name]) => name).join() || JSON.stringify(fields.map(state)) === JSON.stringify(kept.fields)) return;
    fields.forEach((e, i) => { [, e.value, e.checked] = kept.fields[i]; });
    const note = document.createElement("p");
    note.className = "notice";
    note.setAttribute("role", "status");
    note.textContent = "What you had typed is here again. It was not sent yet.";
    form.before(note);
  };
  putBack();

  // What is shown once was made by a form: a reload is not to send that again.
  const made = document.querySelector("[data-address]");
  if (made) history.replaceState(null, "", made.dataset.address);

  // The browser's clock may be wrong: only the difference to the manager's counts.
  let ahead = 0, told = "";
  const now = () => {
    const clock = document.getElementById("clock");
    if (clock && clock.dataset.now !== told) {
      told = clock.dataset.now;
      ahead = Date.now() - Number(told);
    }
    return Date.now() - ahead;
  };

  // As ago() and span() of words.go say it.
  const span = (seconds) => {
    if (seconds > 60) seconds = Math.round(seconds / 60) * 60;
    for (const [length, name] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
      const n = Math.floor(seconds / length);
      if (n >= 1) return n === 1 ? "1 " + name : n + " " + name + "s";
    }
    return Math.floor(seconds) + " s";
  };
  const age = () => {
    const at = now();
    for (const time of document.querySelectorAll("time[data-age]")) {
      const seconds = (at - Date.parse(time.dateTime)) / 1000;
      const text = seconds < 1 ? "just now" : span(seconds) + " ago";
      if (time.textContent !== text) time.textContent = text;
    }
  };
  now();
  setInterval(age, 1000);
  window.managerTime = () => new Date(now());
})();
