// Keeps an open page true: listens to what changes, and fetches the page's own
// content again when that is about something it shows. #live says which topics
// those are, and is told whether the page is live.
(() => {
  "use strict";
  const status = document.getElementById("live");
  if (!status) return;
  const topics = new Set(status.dataset.topics.split(" "));
  const every = Number(status.dataset.every);
  const shortest = 1000; // between two fetches
  const patience = 10000; // with one answer

  let last = window.managerTime(); // when the content was true
  let fetching = false, wanted = false, timer = 0, failed = false;
  let stream = null, listening = false, pause = 1000;

  const say = () => {
    const live = listening && !failed;
    const text = live ? "Live" : "Not live: reconnecting, last update " + last.toLocaleTimeString("en-GB");
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("bad", !live);
  };

  // A manager of another version has other styles and scripts: the page is loaded
  // anew, with what was typed. Not again and again while managers of two versions
  // answer.
  const version = () => document.getElementById("clock").dataset.version;
  const loaded = version();
  const renew = () => {
    if (version() === loaded || Date.now() - Number(sessionStorage.getItem("renewed")) < 60000) return;
    sessionStorage.setItem("renewed", Date.now());
    window.keepTyped();
    location.reload();
  };

  // concerns tells whether an event is about something that the page shows.
  const concerns = (kind, data) => {
    if (kind === "reset" || topics.has("all")) return true;
    const about = {
      site: ["sites", "site:" + data.id],
      agent: ["agents", "agent:" + data.id, "site:" + data.siteId],
      event: ["events", "agent:" + data.agentId, "site:" + data.siteId],
    }[kind] || [];
    return about.some((topic) => topics.has(topic));
  };

  // refresh asks for a fetch: soon, one at a time, and not while nobody looks.
  const refresh = () => {
    wanted = true;
    if (fetching || timer || document.hidden) return;
    timer = setTimeout(fetchContent, Math.max(0, shortest - (Date.now() - fetchContent.at)));
  };

  const fetchContent = async () => {
    timer = 0;
    if (document.hidden) return;
    wanted = false;
    fetching = true;
    fetchContent.at = Date.now();
    try {
      const answer = await fetch(location.pathname + location.search, {
        headers: { "X-Refresh": "1" }, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(patience),
      });
      if (answer.status === 401) {
        window.keepTyped();
        location.assign(status.dataset.signIn + "?next=" + encodeURIComponent(location.pathname.slice(status.dataset.prefix.length) + location.search));
        return;
      }
      if (answer.status >= 500) throw new Error(answer.status);
      await htmx.swap({ sourceElement: document.body, target: "#content", swap: "innerMorph", text: await answer.text() });
      renew();
      failed = false;
      last = window.managerTime();
    } catch {
      failed = true;
      setTimeout(refresh, 2000);
    } finally {
      fetching = false;
    }
    say();
    if (wanted) refresh();
  };
  fetchContent.at = Date.now();

  // listen is told at its start that all may have changed, so nothing is missed
  // between two streams.
  const listen = () => {
    stream?.close();
    if (document.hidden) return;
    stream = new EventSource(status.dataset.stream);
    stream.onopen = () => { listening = true; pause = 1000; say(); };
    for (const kind of ["reset", "site", "agent", "event"]) {
      stream.addEventListener(kind, (event) => { if (concerns(kind, JSON.parse(event.data))) refresh(); });
    }
    // The browser comes back by itself, with the id of the last event, unless it
    // was refused: then the page finds out whether the session has ended.
    stream.onerror = () => {
      listening = false;
      say();
      if (stream.readyState !== EventSource.CLOSED) return;
      refresh();
      setTimeout(listen, pause);
      pause = Math.min(pause * 2, 30000);
    };
  };

  // Nobody looks: nothing is fetched, and no connection is held, of which a browser
  // has few.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      return;
    }
    listen();
    refresh();
  });
  // A page that comes back by the back button is old, and its stream has ended.
  addEventListener("pagehide", () => stream?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) { listen(); refresh(); } });
  if (every) setInterval(refresh, every);
  listen();
})();
