// GPU hours: how long GPUs were held, how much of that programs computed, and how long none did.
import { useEffect, useRef, useState } from "preact/hooks";
import { useSignedIn } from "./actions";
import { ask, type Now } from "./api";
import { Choice } from "./choice";
import { call } from "./session";

interface Row {
  leases: number;
  gpu_seconds: number;
  used_gpu_seconds: number | null;
  idle_gpu_seconds: number | null;
}
interface GpuRow extends Row { label: string; uuid: string }
interface UserRow extends Row { user: string | null }
interface Answer {
  since: string;
  until: string;
  gpus: GpuRow[];
  users?: UserRow[];
}

const RANGES = [{ value: "24h", text: "24 h" }, { value: "7d", text: "7 d" }, { value: "90d", text: "90 d" }] as const;
const COLUMNS = [
  { key: "gpu_seconds", title: "Held", kind: "slices" },
  { key: "used_gpu_seconds", title: "Used", kind: "swap" },
  { key: "idle_gpu_seconds", title: "Held, idle", kind: "foreign" },
] as const;
const PERIOD_MS = 60_000;

const RANGE_MS: Record<string, number> = { "24h": 24 * 3600e3, "7d": 7 * 24 * 3600e3, "90d": 90 * 24 * 3600e3 };
type Own = { since: string; until: string; rows: (Row & { key: string | null })[] };
const NOTHING: Row = { leases: 0, gpu_seconds: 0, used_gpu_seconds: null, idle_gpu_seconds: null };

// The GPU hours as `gpurota report` shows them to the user who is signed in.
async function ownHours(range: string, now: Now | null): Promise<Answer> {
  const since = new Date(Date.now() - (RANGE_MS[range] ?? 0)).toISOString();
  const [byGpu, byUser] = await Promise.all([call<Own>("Report", { since, by: "gpu" }), call<Own>("Report", { since, by: "user" })]);
  const gpus = (now?.gpus ?? []).map(({ label, uuid }) => ({ ...(byGpu.rows.find((row) => row.key === uuid) ?? NOTHING), label, uuid }));
  return { since: byGpu.since, until: byGpu.until, gpus, users: byUser.rows.map((row) => ({ ...row, user: row.key ?? null })) };
}

function useHours(range: string, now: Now | null): { answer: Answer | null; error: string } {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState("");
  const session = useSignedIn();
  const latest = useRef(now);
  latest.current = now;
  // A user who signs out no longer sees what the session showed.
  useEffect(() => setAnswer(null), [session?.session_id]);
  useEffect(() => {
    let wanted = true;
    const load = () => {
      // A page that nobody looks at does not keep a session alive.
      if (document.hidden) return;
      (session ? ownHours(range, latest.current) : ask<Answer>(`api/hours/${range}`)).then(
        (got) => { if (wanted) { setAnswer(got); setError(""); } },
        (reason: Error) => { if (wanted) setError(reason.message); },
      );
    };
    load();
    const timer = window.setInterval(load, PERIOD_MS);
    return () => { wanted = false; window.clearInterval(timer); };
  }, [range, session?.session_id, now !== null]);
  return { answer, error };
}

function hours(seconds: number): string {
  const value = seconds / 3600;
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function Cell({ seconds, most, kind }: { seconds: number | null; most: number; kind: string }) {
  if (seconds === null) return <td class="number">–</td>;
  return (
    <td class="number amount">
      {hours(seconds)}
      <span class="bar" aria-hidden="true">{seconds > 0 && <span class={`part ${kind}`} style={{ width: `${most > 0 ? Math.min(100, (100 * seconds) / most) : 0}%` }} />}</span>
    </td>
  );
}

// `most`: the seconds of a full bar.
function Hours({ title, name, rows, most }: { title: string; name: string; rows: { name: string; row: Row }[]; most: number }) {
  return (
    <div class="panel">
      <table class="hours">
        <caption>{title}</caption>
        <thead>
          <tr><th scope="col">{name}</th>{COLUMNS.map((column) => <th key={column.key} scope="col" class="number">{column.title}, h</th>)}<th scope="col" class="number">Leases</th></tr>
        </thead>
        <tbody>
          {rows.map((each) => (
            <tr key={each.name}>
              <th scope="row">{each.name}</th>
              {COLUMNS.map((column) => <Cell key={column.key} seconds={each.row[column.key]} most={most} kind={column.kind} />)}
              <td class="number">{each.row.leases}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Tables({ answer }: { answer: Answer }) {
  const length = (Date.parse(answer.until) - Date.parse(answer.since)) / 1000;
  const users = answer.users ?? [];
  const most = Math.max(0, ...users.map((row) => Math.max(row.gpu_seconds, row.used_gpu_seconds ?? 0)));
  return (
    <>
      <Hours title={`GPU hours: a full bar is ${hours(length)}`} name="GPU" rows={answer.gpus.map((row) => ({ name: row.label, row }))} most={length} />
      {users.length > 0 && <Hours title="Users" name="User" rows={users.map((row) => ({ name: row.user ?? "others", row }))} most={most} />}
      <p class="empty">
        A slice counts as its part of the GPU while it is held. Used is the load of its programs times the time: half a GPU that is kept wholly busy is
        held for half an hour each hour, and used for one.
      </p>
    </>
  );
}

export function HoursView({ now }: { now: Now | null }) {
  const [range, setRange] = useState<string>("7d");
  const { answer, error } = useHours(range, now);
  return (
    <>
      <Choice name="hours" legend="How long back" options={RANGES} value={range} onChoose={setRange} />
      {error !== "" && <p class="trouble">The GPU hours cannot be had: {error}.</p>}
      {answer && <Tables answer={answer} />}
    </>
  );
}
