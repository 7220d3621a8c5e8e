// What GPUs have room for: whether one is free, and how much memory new leases would get.
import type { Gpu } from "./api";
import { gib, plural, words } from "./format";

// What a new slice would get on `gpu` at once. Null: the daemon does not tell.
export function availableOn(gpu: Gpu): number | null { return gpu.available_bytes; }

export function isFree(gpu: Gpu): boolean { return gpu.state === "available"; }

// A GPU that is split is given out as its instances, so these count instead of it.
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

// The word of `gpurota status` for the state of a GPU.
export function stateText(state: string): string { return STATES[state] ?? words(state); }

// The word of `gpurota status` for what the watch has found.
export function findingText(kind: string): string { return FINDINGS[kind] ?? words(kind); }
