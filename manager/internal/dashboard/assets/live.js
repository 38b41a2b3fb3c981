// Refreshes the list of agents in place and says so when it cannot.
(() => {
  "use strict";
  const every = 5000;
  const status = document.getElementById("live");
  const list = document.getElementById("agents");
  if (!status || !list) return;

  const say = (text, bad) => {
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("bad", Boolean(bad));
  };

  // What somebody opened or closed stays so over a refresh.
  const choices = new Map();
  list.addEventListener("toggle", (event) => {
    if (event.target.id) choices.set(event.target.id, event.target.open);
  }, true);

  const busyReading = () => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && list.contains(selection.anchorNode);
  };

  const replace = (html) => {
    const active = list.contains(document.activeElement) && document.activeElement;
    const focused = active && (active.id ? active : active.closest("details"));
    list.innerHTML = html;
    for (const [id, open] of choices) {
      const element = document.getElementById(id);
      if (element) element.open = open;
    }
    const again = focused && document.getElementById(focused.id);
    if (again) (again.querySelector("summary") || again).focus();
  };

  let since = new Date();
  const refresh = async () => {
    try {
      const answer = await fetch(status.dataset.fragment, {
        cache: "no-store", redirect: "error", signal: AbortSignal.timeout(10000),
      });
      if (answer.status === 401) {
        location.assign(status.dataset.signIn);
        return;
      }
      if (!answer.ok) throw new Error(answer.status);
      const html = await answer.text();
      if (!busyReading()) replace(html);
      since = new Date();
      say("live");
    } catch {
      say("not live: the manager does not answer since " + since.toLocaleTimeString(), true);
    }
    setTimeout(refresh, every);
  };
  say("live");
  setTimeout(refresh, every);
})();
