// Turns: who had the turn of each GPU in the last minutes, and what moving memory has cost.
import { useEffect, useRef, useState } from "preact/hooks";
import { useSignedIn } from "./actions";
import { ask, type Now } from "./api";
import { clockSeconds, gib, plural, secondsBetween, words } from "./format";
import { call } from "./session";

interface TurnLease {
  lease_id: string;
  user: string;
  phase: string;
  position: number;
  limit_bytes: number;
  resident_bytes: number;
  out_bytes: number;
}
interface Switch {
  time: string;
  lease_id: string;
  in_bytes: number;
  out_bytes: number;
  microseconds: number;
}
interface TurnGpu {
  label: string;
  uuid: string;
  takes_turns: boolean;
  deficit_bytes: number;
  waiting: number;
  leases_in_turns: number;
  handovers: number | null;
  evictions: number | null;
  evicted_bytes: number | null;
  restored_bytes: number | null;
  holder?: string | null;
  leases?: TurnLease[];
  switches?: Switch[];
}
interface Answer {
  time: string;
  host_budget_bytes: number;
  host_out_bytes: number;
  gpus: TurnGpu[];
}

const PERIOD_MS = 2000;

// The daemon's answer to a user who is signed in.
interface OwnTurnGpu extends Omit<TurnGpu, "label" | "waiting" | "leases_in_turns" | "leases" | "switches"> {
  index: number;
  waiting: string[];
  leases: TurnLease[];
  switches: (Omit<Switch, "lease_id"> & { to: string })[];
}
type Own = Omit<Answer, "time" | "gpus"> & { gpus: OwnTurnGpu[] };

// The turns as `gpurota turns` shows them to the user who is signed in.
async function ownTurns(now: Now | null): Promise<Answer> {
  const own = await call<Own>("ListTurns");
  const labels = new Map(now?.gpus?.map((gpu) => [gpu.uuid, gpu.label]));
  const gpus = own.gpus.map((gpu) => ({
    ...gpu, label: labels.get(gpu.uuid) ?? `${gpu.index}`, waiting: gpu.waiting.length, leases_in_turns: gpu.leases.length,
    switches: gpu.switches.map((each) => ({ ...each, lease_id: each.to })),
  }));
  return { ...own, gpus, time: now?.time ?? new Date().toISOString() };
}

function useTurns(now: Now | null): { answer: Answer | null; error: string } {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState("");
  const session = useSignedIn();
  const latest = useRef(now);
  latest.current = now;
  useEffect(() => {
    let wanted = true;
    setAnswer(null);
    const load = () => {
      if (document.hidden) return;
      (session ? ownTurns(latest.current) : ask<Answer>("api/turns")).then(
        (got) => { if (wanted) { setAnswer(got); setError(""); } },
        (reason: Error) => { if (wanted) setError(reason.message); },
      );
    };
    load();
    const timer = window.setInterval(load, PERIOD_MS);
    return () => { wanted = false; window.clearInterval(timer); };
  }, [session?.session_id]);
  return { answer, error };
}

interface Span { lease: string; from: number; to: number } // as parts of the strip's length

// The leases that had the turn, from the oldest switch in the list until now.
function spansOf(gpu: TurnGpu, now: string): { spans: Span[]; since: string } | null {
  const switches = gpu.switches ?? [];
  const first = switches[0];
  if (!first) return null;
  const whole = Math.max(0.001, secondsBetween(first.time, now));
  const spans = switches.map((each, i) => {
    const next = switches[i + 1];
    const from = secondsBetween(first.time, each.time) / whole;
    return { lease: each.lease_id, from, to: next ? secondsBetween(first.time, next.time) / whole : gpu.holder === each.lease_id ? 1 : from };
  });
  return { spans, since: first.time };
}

function Strip({ spans }: { spans: Span[] }) {
  return (
    <svg class="strip" viewBox="0 0 1000 14" preserveAspectRatio="none" aria-hidden="true">
      {spans.map((span) => <rect key={span.from} x={span.from * 1000} width={Math.max(1, (span.to - span.from) * 1000)} y="0" height="14" />)}
    </svg>
  );
}

function shareOf(spans: Span[]): string {
  return `${Math.round(100 * spans.reduce((sum, span) => sum + span.to - span.from, 0))} %`;
}

function Lanes({ gpu, now }: { gpu: TurnGpu; now: string }) {
  const history = spansOf(gpu, now);
  const leases = gpu.leases ?? [];
  return (
    <table class="turns">
      <caption class="hidden">Turns on GPU {gpu.label}</caption>
      <thead>
        <tr>
          <th scope="col">Lease</th>
          <th scope="col">{history ? `Turns since ${clockSeconds(history.since)}` : "Turns"}</th>
          <th scope="col" class="number">Had it</th>
          <th scope="col">Now</th>
          <th scope="col" class="number">GiB on the GPU, in host memory</th>
        </tr>
      </thead>
      <tbody>
        {leases.map((lease) => {
          const spans = history?.spans.filter((span) => span.lease === lease.lease_id) ?? [];
          return (
            <tr key={lease.lease_id} class={lease.phase === "holding" ? "holds" : ""}>
              <th scope="row">{lease.lease_id}<small>{lease.user}</small></th>
              <td class="lane"><Strip spans={spans} /></td>
              <td class="number">{history ? shareOf(spans) : "–"}</td>
              <td>{words(lease.phase)}
                <small>{lease.phase === "waiting" && lease.position > 0 ? `${lease.position}. in line` : ""}</small></td>
              <td class="number">{gib(lease.resident_bytes)}, {gib(lease.out_bytes)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function moved(gpu: TurnGpu): string {
  return [
    gpu.handovers !== null ? plural(gpu.handovers, "turn") : "",
    gpu.evicted_bytes !== null ? `${gib(gpu.evicted_bytes)} GiB moved to host memory` : "",
    gpu.restored_bytes !== null ? `${gib(gpu.restored_bytes)} GiB moved back` : "",
  ].filter((text) => text !== "").join(", ");
}

function Panel({ gpu, now }: { gpu: TurnGpu; now: string }) {
  const id = `turns-${gpu.uuid}`;
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="title turns-title">
        <h3 id={id}>GPU {gpu.label}</h3>
        <span class="model">{moved(gpu)} since gpurotad started</span>
        <span class="state">short by {gib(gpu.deficit_bytes)} GiB</span>
      </div>
      {gpu.leases ? <Lanes gpu={gpu} now={now} /> : <p class="none lanes">{plural(gpu.leases_in_turns, "lease")}, {gpu.waiting} waiting for the turn.</p>}
    </section>
  );
}

export function Turns({ now }: { now: Now | null }) {
  const { answer, error } = useTurns(now);
  const shared = (answer?.gpus ?? []).filter((gpu) => gpu.leases_in_turns > 0);
  const gpus = shared.filter((gpu) => gpu.takes_turns);
  const fitting = shared.filter((gpu) => !gpu.takes_turns).map((gpu) => gpu.label);
  return (
    <>
      {error !== "" && <p class="trouble">The turns cannot be had: {error}.</p>}
      {answer && shared.length === 0 && <p class="empty">No lease shares a GPU in turns.</p>}
      {gpus.map((gpu) => <Panel key={gpu.uuid} gpu={gpu} now={answer?.time ?? ""} />)}
      {fitting.length > 0 && <p class="empty">GPU {fitting.join(", ")}: the leases that could take turns all fit, so nobody waits.</p>}
      {answer && shared.length > 0 && (
        <p class="empty">{gib(answer.host_out_bytes)} of {gib(answer.host_budget_bytes)} GiB of host memory hold what was moved.</p>
      )}
    </>
  );
}
