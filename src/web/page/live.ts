// The current state of the machine: from the server's events, or by polling every few seconds where
// the server sends no events (it has too many viewers, or shows everything only to users who have
// signed in). A hidden page has no connection.
import { useEffect, useState } from "preact/hooks";
import { ask, type Now } from "./api";
import { SignedOut } from "./session";

export interface Live {
  now: Now | null; // the last one from a daemon that answered
  trouble: "" | "connecting" | "daemon" | "connection" | "signed-out";
}

// Four periods of the server (src/web/viewers.h), and less than the ten seconds after which a page
// must say that it is out of date.
const SILENCE_MS = 8000;
const RETRY_MS = 3000;
const PERIOD_MS = 2000;

// Starts again when `who` changes.
export function useLive(who: string): Live {
  const [live, setLive] = useState<Live>({ now: null, trouble: "connecting" });
  useEffect(() => watch(setLive), [who]);
  return live;
}

type Set = (change: (live: Live) => Live) => void;

function watch(set: Set): () => void {
  let source: EventSource | null = null;
  let heard = Date.now();
  let retry = 0;
  let on = false;
  let over = false;
  let has_stream = true;

  const take = (now: Now) => {
    if (over) return;
    heard = Date.now();
    has_stream = now.level !== "signed-in";
    set((live) => (now.daemon.up ? { now, trouble: "" } : { now: live.now, trouble: "daemon" }));
  };
  const fail = (reason: Error) => {
    if (over) return;
    if (reason instanceof SignedOut) {
      stop(); // starts again after a sign-in
      set(() => ({ now: null, trouble: "signed-out" }));
    } else if (!(reason instanceof TypeError)) {
      heard = Date.now();
      set((live) => ({ ...live, trouble: "daemon" }));
    }
  };
  const askOnce = () => ask<Now>("api/now").then(take, fail).finally(() => {
    if (on && !over) retry = window.setTimeout(open, has_stream ? RETRY_MS : PERIOD_MS);
  });
  const open = () => {
    on = true;
    window.clearTimeout(retry);
    source?.close();
    source = null;
    if (!has_stream) {
      void askOnce();
      return;
    }
    source = new EventSource("api/live");
    source.onmessage = (event) => take(JSON.parse(event.data as string) as Now);
    // When the server refuses, the browser does not try again by itself.
    source.onerror = () => { if (source?.readyState === EventSource.CLOSED) void askOnce(); };
  };
  const stop = () => {
    on = false;
    window.clearTimeout(retry);
    source?.close();
    source = null;
  };
  const look = () => {
    if (!on || Date.now() - heard < SILENCE_MS) return;
    set((live) => ({ ...live, trouble: "connection" }));
  };
  const onVisibility = () => {
    heard = Date.now();
    if (document.hidden) stop();
    else open();
  };

  const timer = window.setInterval(look, 1000);
  document.addEventListener("visibilitychange", onVisibility);
  if (!document.hidden) open();
  return () => {
    over = true;
    window.clearInterval(timer);
    document.removeEventListener("visibilitychange", onVisibility);
    stop();
  };
}
