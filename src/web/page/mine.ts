// The state that the daemon shows the signed-in user: every lease, request and booking as in
// `gpurota status`, and more of their own.
import { useEffect, useState } from "preact/hooks";
import type { Booking, Finding, Lease, Now, Request } from "./api";
import { call, type Session } from "./session";

interface Seen {
  leases: Lease[];
  bookings: Booking[];
  requests: Request[];
  findings: Finding[];
}

const PERIOD_MS = 2000;

// Runs `load` now and every `period` while the page is visible, and again when `which` changes.
// `wanted` tells `load` whether its result is still needed.
export function usePeriodically(load: (wanted: () => boolean) => Promise<void>, period: number, on: boolean, which: unknown): void {
  useEffect(() => {
    if (!on) return;
    let alive = true;
    let timer = 0;
    const go = async () => {
      if (!document.hidden) await load(() => alive).catch(() => undefined);
      if (alive) timer = window.setTimeout(go, period);
    };
    const onVisible = () => {
      if (document.hidden) return;
      window.clearTimeout(timer);
      void go();
    };
    void go();
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      alive = false;
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [on, which]);
}

let poke: () => void = () => undefined;
// Shows the effect of an action at once.
export function refresh(): void { poke(); }

// The public state, with what this user may see in addition.
export function useMine(now: Now | null, session: Session | null): Now | null {
  const [seen, setSeen] = useState<Seen | null>(null);
  const [asked, setAsked] = useState(0);
  poke = () => setAsked((count) => count + 1);
  usePeriodically(async (wanted) => {
    const [status, queue] = await Promise.all([call<Seen>("Status"), call<Pick<Seen, "requests">>("ListRequests")]);
    if (wanted()) setSeen({ leases: status.leases, bookings: status.bookings ?? [], requests: queue.requests, findings: status.findings });
  }, PERIOD_MS, session !== null, `${session?.session_id ?? ""} ${asked}`);
  useEffect(() => { if (session === null) setSeen(null); }, [session === null]);
  if (!now?.gpus || !session || !seen) return now;
  return { ...now, leases: seen.leases, bookings: seen.bookings, found: seen.findings, ...(now.queue ? { queue: { ...now.queue, requests: seen.requests } } : {}) };
}
