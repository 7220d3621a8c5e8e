// The memory of a GPU as a bar: who holds how much of it.
import type { Gpu } from "./api";
import { availableOn } from "./room";

interface Part {
  kind: "slices" | "swap" | "foreign" | "other" | "promised" | "kept" | "free";
  text: string;
  bytes: number;
}

// The parts of a GPU's memory, from left to right; together they are all of it. Memory beyond the
// capacity, or kept for a waiting request, is not free.
export function partsOf(gpu: Gpu): Part[] {
  const known = gpu.slices_bytes + gpu.swap_bytes + gpu.unreserved_bytes;
  const other = Math.max(0, (gpu.used_bytes ?? known) - known);
  const used = known + other;
  const unused = Math.max(0, gpu.memory_bytes - used);
  const promised = Math.min(unused, Math.max(0, gpu.reserved_bytes - gpu.slices_bytes));
  const rest = unused - promised;
  const free = Math.min(rest, availableOn(gpu) ?? rest);
  return [
    { kind: "slices", text: "leases", bytes: gpu.slices_bytes },
    { kind: "swap", text: "leases in turns", bytes: gpu.swap_bytes },
    { kind: "foreign", text: "without a lease", bytes: gpu.unreserved_bytes },
    { kind: "other", text: "system", bytes: other },
    { kind: "promised", text: "promised, unused", bytes: promised },
    { kind: "kept", text: gpu.swap_available_bytes ? "for turns only" : "not for new leases", bytes: rest - free },
    { kind: "free", text: "free", bytes: free },
  ];
}

export function Bar({ gpu }: { gpu: Gpu }) {
  const parts = partsOf(gpu).filter((part) => part.bytes > 0);
  const total = parts.reduce((sum, part) => sum + part.bytes, 0) || 1;
  return (
    <div class="bar" aria-hidden="true">
      {parts.map((part) => (
        <span key={part.kind} class={`part ${part.kind}`} style={{ width: `${(100 * part.bytes) / total}%` }} />
      ))}
    </div>
  );
}
