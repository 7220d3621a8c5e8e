// The items of an array, some at a time: the progress of each, the actions on it, and its output.
import { useState } from "preact/hooks";
import { duration, secondsBetween, words } from "./format";
import { usePeriodically } from "./mine";
import { call } from "./session";

export interface Run {
  reason: string;
  code: number;
}

interface Item {
  index: number;
  state: string;
  detail: string | null;
  command: string[] | null;
  since: string | null;
  lease_id: string | null;
  position: number | null;
  runs: Run[];
}

export interface ItemCounts {
  running: number;
  done: number;
  failed: number;
  unknown: number;
  cancelled: number;
  waiting: number;
}

export type ItemAction = "stop" | "restart";

const PERIOD_MS = 2000;
const MOST = 50;
const ENDED = new Set(["done", "failed", "unknown", "cancelled"]);

export function countOf(items: ItemCounts): number {
  return items.running + items.done + items.failed + items.unknown + items.cancelled + items.waiting;
}

export function runText(runs: Run[]): string {
  const last = runs[runs.length - 1];
  if (!last) return "";
  return `last run: ${words(last.reason)}${last.reason === "exited" ? ` with ${last.code}` : ""}`;
}

// The items that have begun, beginning at index `from`.
function useItems(name: string, user: string, from: number, asked: number): { items: Item[] | null; next: number | null; error: string } {
  const [shown, setShown] = useState<{ items: Item[] | null; next: number | null; error: string }>({ items: null, next: null, error: "" });
  usePeriodically(async (wanted) => {
    try {
      const { items, next } = await call<{ items: Item[]; next: number | null }>("ListJobItems", { name, user, from, most: MOST, begun: true });
      if (wanted()) setShown({ items, next, error: "" });
    } catch (reason) {
      if (wanted()) setShown((old) => ({ ...old, error: (reason as Error).message }));
    }
  }, PERIOD_MS, true, `${name} ${from} ${asked}`);
  return shown;
}

interface Props {
  name: string;
  user: string;
  now: string;
  asked: number; // changes after each action
  shown: number | null; // the item whose output is shown
  onAct: (action: ItemAction, item: number) => void;
  onLog: (item: number) => void;
}

// Rows of the table of jobs, below that of their array.
export function ItemRows({ name, user, now, asked, shown, onAct, onLog }: Props) {
  const [pages, setPages] = useState<number[]>([0]);
  const { items, next, error } = useItems(name, user, pages[pages.length - 1] ?? 0, asked);
  return (
    <>
      {error !== "" && <tr class="item"><td colSpan={4} class="trouble">The items cannot be had: {error}.</td></tr>}
      {items?.length === 0 && <tr class="item"><td colSpan={4}>No item has begun.</td></tr>}
      {items?.map((item) => {
        const called = `${name}[${item.index}]`;
        const action: ItemAction = ENDED.has(item.state) ? "restart" : "stop";
        const title = action === "stop" ? "Stop" : "Restart";
        return (
          <tr key={item.index} class="item">
            <th scope="row" class="who">{called}{item.command && <small>{item.command.join(" ")}</small>}</th>
            <td><span class={`state ${item.state}`}>{item.state}</span><small>{[item.detail ?? "", runText(item.runs)].filter((text) => text !== "").join(" · ")}</small></td>
            <td class="number">{item.since ? duration(secondsBetween(item.since, now)) : "–"}<small>{item.lease_id ?? (item.position ? `${item.position}. in the queue` : "")}</small></td>
            <td class="number">
              <span class="actions">
                <button type="button" class="small" aria-label={`${title} ${called}`} onClick={() => onAct(action, item.index)}>{title}</button>
                <button type="button" class="small" aria-expanded={shown === item.index} aria-label={`Output of ${called}`} onClick={() => onLog(item.index)}>Output</button>
              </span>
            </td>
          </tr>
        );
      })}
      {(pages.length > 1 || next !== null) && (
        <tr class="item">
          <td colSpan={4}>
            <span class="actions">
              {pages.length > 1 && <button type="button" class="small" onClick={() => setPages(pages.slice(0, -1))}>Previous items</button>}
              {next !== null && <button type="button" class="small" onClick={() => setPages([...pages, next])}>Next items</button>}
            </span>
          </td>
        </tr>
      )}
    </>
  );
}
