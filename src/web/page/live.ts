// The state of the machine, kept up to date: by events of the server, by asking every few seconds where it has too many viewers already. A page that
// nobody sees has no connection.
import { useEffect, useState } from "preact/hooks";
import { ask, type Now } from "./api";

export interface Live {
  now: Now | null; // the last one that came from a daemon that answers
  trouble: "" | "connecting" | "daemon" | "connection";
}

// Four periods of the server (src/web/viewers.h), and within the ten seconds in which a page has to say that it is out of date.
const SILENCE_MS = 8000;
const RETRY_MS = 3000;

export function useLive(): Live {
  const [live, setLive] = useState<Live>({ now: null, trouble: "connecting" });
  useEffect(() => watch(setLive), []);
  return live;
}

type Set = (change: (live: Live) => Live) => void;

function watch(set: Set): () => void {
  let source: EventSource | null = null;
  let heard = Date.now();
  let retry = 0;

  const take = (now: Now) => {
    heard = Date.now();
    set((live) => (now.daemon.up ? { now, trouble: "" } : { now: live.now, trouble: "daemon" }));
  };
  const open = () => {
    window.clearTimeout(retry);
    source?.close();
    source = new EventSource("api/live");
    source.onmessage = (event) => take(JSON.parse(event.data as string) as Now);
    // Where the server refuses, as it has too many viewers, the browser does not try again by itself.
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      ask<Now>("api/now").then(take, () => undefined);
      retry = window.setTimeout(open, RETRY_MS);
    };
  };
  const close = () => {
    window.clearTimeout(retry);
    source?.close();
    source = null;
  };
  const look = () => {
    if (source === null || Date.now() - heard < SILENCE_MS) return;
    set((live) => ({ ...live, trouble: "connection" }));
  };
  const onVisibility = () => {
    heard = Date.now();
    if (document.hidden) close();
    else open();
  };

  const timer = window.setInterval(look, 1000);
  document.addEventListener("visibilitychange", onVisibility);
  if (!document.hidden) open();
  return () => {
    window.clearInterval(timer);
    document.removeEventListener("visibilitychange", onVisibility);
    close();
  };
}
