// Why somebody waits, as the daemon says it: the only place of the page where the time is filled in.
import type { Reason } from "./api";
import { clock } from "./format";

interface Waits {
  wait_reason?: Reason | null;
  // What a daemon says that knows no such reasons: of a request, of a job.
  reason?: string;
  detail?: string | null;
}

// The sentence, and what would let it start now; empty: it does not wait.
export function reasonText(waits: Waits, now: string): string {
  const reason = waits.wait_reason;
  if (!reason) return waits.reason ?? waits.detail ?? "";
  const time = reason.time;
  const text = time ? reason.text.replace("{time}", () => clock(time, now)) : reason.text;
  return reason.remedy ? `${text}; ${reason.remedy}` : text;
}
