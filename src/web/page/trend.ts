// The utilisation of each GPU in the last minutes, for the small lines beside its figure: first the
// recorded values, then new ones.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, type Figures, type History, type Now } from "./api";

const MOST = 300; // points of a line; two seconds each is ten minutes
const PERIOD_MS = 2000;

export type Trends = Map<string, Figures>;

export function useTrends(now: Now): Trends {
  const [past, setPast] = useState<Trends>(new Map());
  const lines = useRef<Trends>(new Map());
  const taken = useRef("");
  useEffect(() => {
    ask<History>("api/history/15m").then(
      (history) => setPast(new Map(history.gpus.map((gpu) => [gpu.uuid, thinned(gpu.utilisation_percent, history.step_seconds)]))),
      () => undefined,
    );
  }, []);
  if (taken.current !== now.time) {
    taken.current = now.time;
    for (const gpu of now.gpus ?? []) {
      const line = lines.current.get(gpu.uuid) ?? [];
      line.push(gpu.utilisation_percent);
      lines.current.set(gpu.uuid, line.slice(-MOST));
    }
  }
  const all: Trends = new Map();
  for (const [uuid, line] of lines.current) all.set(uuid, [...(past.get(uuid) ?? []), ...line].slice(-MOST));
  return all;
}

function thinned(figures: Figures, stepSeconds: number): Figures {
  const each = Math.max(1, Math.round(PERIOD_MS / 1000 / stepSeconds));
  return figures.filter((_, i) => i % each === 0);
}
