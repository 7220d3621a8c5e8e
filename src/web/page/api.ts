// The data that gpurota-web sends (docs/operate/web-page.md lists it). The page makes no request to
// any other host.
import { onSignedOut, sessionHeaders, SIGNED_OUT } from "./session";

export type Level = "totals" | "names" | "signed-in";
export function showsNames(level: Level | undefined): boolean { return level === "names" || level === "signed-in"; }

export interface Gpu {
  label: string;
  uuid: string;
  name: string;
  is_instance: boolean;
  state: string;
  memory_bytes: number;
  used_bytes: number | null;
  unified: boolean;
  reserved_bytes: number;
  slices_bytes: number;
  swap_bytes: number;
  unreserved_bytes: number;
  hidden_bytes: number | null;
  available_bytes: number | null;
  swap_available_bytes: number | null;
  leases: number;
  utilisation_percent: number | null;
  power_mw: number | null;
  power_limit_mw: number | null;
  temperature_celsius: number | null;
  slowdown_celsius: number | null;
  sm_clock_mhz: number | null;
  clock_limits: string[];
  ecc_uncorrected: number | null;
  xid_errors: number | null;
  takes_turns: boolean;
  waiting_for_turn: number;
  turn_holder?: string | null;
}

export interface LeaseGpu {
  label: string;
  uuid: string;
  limit_bytes: number | null;
  used_bytes: number | null;
  processes: number;
  turn: string | null;
  turn_position: number | null;
  moved_out_bytes: number | null;
  unused_since: string | null;
}

export interface Lease {
  lease_id: string;
  kind: string;
  share: string;
  state: string;
  user: string;
  as_name: string | null;
  since: string;
  ends: string | null;
  priority: number | null;
  gpus: LeaseGpu[];
  // For users who are signed in; private fields are null except for their owner.
  uid?: number;
  processes?: number;
  name?: string | null;
  note?: string | null;
  model?: string | null;
  command?: string[] | null;
}

// A finding of the watch; sent to users who are signed in.
export interface Finding {
  kind: string;
  gpu_uuid: string;
  lease_id?: string | null;
  user?: string | null;
  since: string;
  used_bytes?: number | null;
}

// docs/design/control-protocol.md has the codes. Shown by reasons.ts.
export interface Reason {
  code: string;
  text: string;
  time?: string | null;
  remedy?: string | null;
}

export interface Request {
  request_id: string;
  position: number;
  kind: string;
  user: string;
  as_name: string | null;
  since: string;
  gpus: number;
  memory: { bytes?: number | null; percent?: number | null } | null;
  swap: boolean;
  gpu_type: string | null;
  gpu_class: string | null;
  seconds: number | null;
  expected: string | null;
  planned_labels: string[] | null;
  wait_reason: Reason | null; // null: sent by an older daemon
  reason: string;
  uid?: number; // for users who are signed in
}

export interface Booking {
  wait_reason: Reason | null; // why it has not begun, though its time has come
  request_id: string;
  user: string;
  as_name: string | null;
  begins: string;
  ends: string;
  labels: string[];
  uid?: number; // for users who are signed in
}

export interface Daemon {
  up: boolean;
  version?: string;
  driver_version?: string | null;
  since?: string;
  driver_ok?: boolean;
  store_ok?: boolean;
}

export interface Now {
  time: string;
  level: Level;
  sign_in: "none" | "link" | "proxy";
  machines: number; // of the fleet, including this one
  daemon: Daemon;
  gpus?: Gpu[];
  leases_by_kind?: Record<string, number>;
  leases_by_share?: Record<string, number>;
  findings?: Record<string, number>;
  queue?: { waiting: number; gpus: number; oldest_since: string | null; requests?: Request[] };
  leases?: Lease[];
  bookings?: Booking[];
  found?: Finding[]; // for users who are signed in
}

export type Figures = (number | null)[];

export interface GpuHistory {
  uuid: string;
  label: string | null;
  utilisation_percent: Figures;
  max_utilisation_percent: Figures;
  used_bytes: Figures;
  max_used_bytes: Figures;
  power_mw: Figures;
  max_power_mw: Figures;
  temperature_celsius: Figures;
  max_temperature_celsius: Figures;
}

export interface History {
  since: string;
  until: string;
  first: string;
  step_seconds: number;
  steps: number;
  gpus: GpuHistory[];
}

export interface Event {
  event_id: number;
  time: string;
  type: string;
  gpu: number | null;
  count: number;
  lease_id?: string | null;
  user?: string | null;
  message?: string;
}

export interface Events {
  level: Level;
  events: Event[];
}

export interface Machine {
  name: string;
  url: string; // of its page
  here: boolean;
  state: "answers" | "asked" | "fails";
  error?: string;
  // The fields below are set if the machine answers.
  version?: string;
  daemon_up?: boolean;
  gpus?: number;
  free?: number;
  shared?: number;
  full?: number;
  unavailable?: number;
  leases?: number;
  waiting?: number;
  memory_bytes?: number;
  used_bytes?: number;
  available_bytes?: number;
  utilisation_percent?: number | null;
  models?: { name: string; gpus: number; free: number }[];
  users?: string[];
}

export async function ask<T>(path: string): Promise<T> {
  const answer = await fetch(path, { cache: "no-store", headers: sessionHeaders() });
  if (answer.status === SIGNED_OUT) throw onSignedOut();
  if (answer.ok) return (await answer.json()) as T;
  const text = await answer.text();
  let reason = text.trim();
  try {
    reason = (JSON.parse(text) as { error: string }).error;
  } catch {
    // Plain text, which is already a sentence.
  }
  throw new Error(reason || `gpurota-web answered ${answer.status}`);
}
