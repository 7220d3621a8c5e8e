// Why a request, a booking or a job waits, in the daemon's words: the only place of the page that
// fills in the time.
import type { Reason } from "./api";
import { clock } from "./format";

interface Waits {
  wait_reason?: Reason | null;
  // The reason from an older daemon, for a request or a job.
  reason?: string;
  detail?: string | null;
}

// The sentence, and what would let it start now; empty if nothing waits.
export function reasonText(waits: Waits, now: string): string {
  const reason = waits.wait_reason;
  if (!reason) return waits.reason ?? waits.detail ?? "";
  const time = reason.time;
  const text = time ? reason.text.replace("{time}", () => clock(time, now)) : reason.text;
  return reason.remedy ? `${text}; ${reason.remedy}` : text;
}
