// The room on GPUs: whether one is free, and how much memory new leases would get.
import type { Gpu } from "./api";
import { gib, plural, words } from "./format";

// The memory that a new slice on `gpu` would get at once. Null: the daemon does not report it.
export function availableOn(gpu: Gpu): number | null { return gpu.available_bytes; }

export function isFree(gpu: Gpu): boolean { return gpu.state === "available"; }

// A split GPU is allocated as its instances, so these count instead of it.
function givenOut(gpus: Gpu[]): Gpu[] { return gpus.filter((gpu) => gpu.state !== "split"); }

// "free: 1 of 8 GPUs, 48 GiB"
export function freeText(gpus: Gpu[]): string {
  const all = givenOut(gpus);
  const free = all.filter(isFree).length;
  const bytes = all.reduce((sum, gpu) => sum + (availableOn(gpu) ?? 0), 0);
  return `free: ${free} of ${plural(all.length, "GPU")}, ${gib(bytes)} GiB`;
}

const STATES: Record<string, string> = { available: "free", in_use: "in use", unreserved_use: "NO LEASE", draining: "DRAINING", error: "ERROR" };

const FINDINGS: Record<string, string> = { unreserved_use: "NO LEASE", foreign_use: "NO LEASE", over_limit: "OVER LIMIT", not_limited: "NO LIMIT" };

// The word for a GPU's state in `gpurota status`.
export function stateText(state: string): string { return STATES[state] ?? words(state); }

// The word for a finding of the watch in `gpurota status`.
export function findingText(kind: string): string { return FINDINGS[kind] ?? words(kind); }
