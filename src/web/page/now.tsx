// Now: each GPU, who holds its memory, and its leases.
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { DrainAction, LeaseActions, useSignedIn } from "./actions";
import type { Figures, Finding, Gpu, Lease, LeaseGpu, Now } from "./api";
import { Choice } from "./choice";
import { Compact } from "./compact";
import { clock, duration, gib, plural, secondsBetween, watts, words } from "./format";
import { Bar, partsOf } from "./memory";
import { ReserveAction } from "./reserve";
import { findingText, stateText } from "./room";
import { useTrends } from "./trend";

function MemoryBar({ gpu }: { gpu: Gpu }) {
  const parts = partsOf(gpu).filter((part) => part.bytes > 0);
  return (
    <div class="memory">
      <p class="figure">
        <b>{gpu.used_bytes === null ? "?" : gib(gpu.used_bytes)}</b> of {gib(gpu.memory_bytes)} GiB in use{gpu.unified && ", with the machine's programs"}
      </p>
      <Bar gpu={gpu} />
      <ul class="legend">
        {parts.map((part) => (
          <li key={part.kind}>
            <span class={`swatch part ${part.kind}`} aria-hidden="true" />
            {part.text} <b>{gib(part.bytes)}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

const Spark = memo(function Spark({ figures }: { figures: Figures }) {
  const width = 120;
  const step = width / Math.max(1, figures.length - 1);
  let path = "";
  let pen = "M";
  figures.forEach((figure, i) => {
    if (figure === null) {
      pen = "M";
      return;
    }
    path += `${pen}${(i * step).toFixed(1)} ${(23 - figure * 0.22).toFixed(1)}`;
    pen = "L";
  });
  return (
    <svg class="spark" viewBox={`0 0 ${width} 24`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} />
    </svg>
  );
});

// A figure, and its limit if there is one. `calm`: a figure at its limit is not an alarm.
function Meter(props: { name: string; value: number | null; unit: string; limit: number | null; limitText?: string; calm?: boolean; trend?: Figures | undefined }) {
  const { name, value, unit, limit } = props;
  const share = value !== null && limit ? Math.min(1, value / limit) : 0;
  const level = share >= 0.97 ? "is-high" : share >= 0.9 ? "is-near" : "";
  return (
    <div class={`meter ${props.limitText && !props.calm ? level : ""}`}>
      <dt>{name}</dt>
      <dd>
        <span class="value">
          {value === null ? <span class="unknown">not known</span> : <><b>{value}</b> {unit}</>}
          {value !== null && limit !== null && props.limitText && <span class="limit"> {props.limitText}</span>}
        </span>
        {props.trend ? <Spark figures={props.trend} /> : limit !== null && (
          <span class="track" aria-hidden="true"><span style={{ width: `${100 * share}%` }} /></span>
        )}
      </dd>
    </div>
  );
}

function Board({ gpu, trend }: { gpu: Gpu; trend: Figures | undefined }) {
  const power = gpu.power_mw === null ? null : Number(watts(gpu.power_mw));
  const powerLimit = gpu.power_limit_mw === null ? null : Number(watts(gpu.power_limit_mw));
  return (
    <dl class="board">
      <Meter name="Utilisation" value={gpu.utilisation_percent} unit="%" limit={100} trend={trend} />
      <Meter name="Power" value={power} unit="W" limit={powerLimit} limitText={`of ${powerLimit}`} calm />
      <Meter name="Temperature" value={gpu.temperature_celsius} unit="°C" limit={gpu.slowdown_celsius} limitText={`slows at ${gpu.slowdown_celsius}`} />
    </dl>
  );
}

// A GPU at its power limit works as it should, and so does one whose clocks somebody has set.
const USUAL_LIMITS = new Set(["power", "setting", "sync"]);

function clocksText(limits: string[]): string { return `Clocks are lowered: ${limits.map(words).join(", ")}.`; }

function troublesOf(gpu: Gpu): string[] {
  const troubles: string[] = [];
  const unusual = gpu.clock_limits.filter((limit) => !USUAL_LIMITS.has(limit));
  if (unusual.length > 0) troubles.push(clocksText(unusual));
  if (gpu.xid_errors) troubles.push(`${plural(gpu.xid_errors, "Xid error")} since gpurotad started.`);
  if (gpu.ecc_uncorrected) troubles.push(`${plural(gpu.ecc_uncorrected, "uncorrected memory error")}.`);
  return troubles;
}

function turnText(share: LeaseGpu): string {
  if (!share.turn) return "";
  if (share.turn === "holding") return "has the turn";
  return share.turn === "waiting" && share.turn_position ? `${words(share.turn)}, ${share.turn_position}. in line` : words(share.turn);
}

// The purpose of a lease, as in `gpurota status`: the owner's note, else the model, else the
// command.
function purposeOf(lease: Lease): string {
  return lease.note || lease.model || (lease.command ?? []).join(" ");
}

// The findings about a lease on a GPU: "OVER LIMIT", for example.
function Found({ findings }: { findings: Finding[] }) {
  const texts = new Set(findings.filter((each) => each.kind === "over_limit" || each.kind === "not_limited").map((each) => findingText(each.kind)));
  return <>{[...texts].map((text) => <span key={text} class="alarm">{text}</span>)}</>;
}

// Use of a GPU without a lease of it.
function StrangerRow({ finding, now }: { finding: Finding; now: string }) {
  return (
    <tr>
      <th scope="row">–</th>
      <td class="who"><span class="user">{finding.user ?? "unknown"}</span><span class="alarm">{findingText(finding.kind)}</span></td>
      <td class="number">{finding.used_bytes === null || finding.used_bytes === undefined ? "?" : gib(finding.used_bytes)}</td>
      <td class="number"><span class="since">{duration(secondsBetween(finding.since, now))}</span></td>
    </tr>
  );
}

function LeaseRow({ lease, share, findings, now }: { lease: Lease; share: LeaseGpu; findings: Finding[]; now: string }) {
  const limit = share.limit_bytes;
  const turn = turnText(share);
  const mine = useSignedIn()?.uid === lease.uid && lease.uid !== undefined;
  const remarks = [turn, lease.state === "active" ? "" : lease.state, share.unused_since ? "unused" : "",
    share.moved_out_bytes ? `${gib(share.moved_out_bytes)} GiB in host memory` : "", lease.name ?? "", purposeOf(lease)].filter((text) => text !== "");
  return (
    <tr class={`${share.turn === "holding" ? "holds" : ""} ${mine ? "mine" : ""}`}>
      <th scope="row">
        <span class={`swatch part ${lease.share === "swap" ? "swap" : "slices"}`} aria-hidden="true" />
        {lease.lease_id}
      </th>
      <td class="who">
        <span class="user">{lease.user}{lease.as_name && <i> {lease.as_name}</i>}{mine && <span class="tag">mine</span>}</span>
        <Found findings={findings} />
        <small>{[words(lease.kind), lease.share, ...remarks].join(" · ")}</small>
        <LeaseActions lease={lease} />
      </td>
      <td class="number">
        {share.used_bytes === null ? "?" : gib(share.used_bytes)}<span class="limit"> / {limit === null ? "all" : gib(limit)}</span>
      </td>
      <td class="number">
        {lease.ends && <small>ends in {duration(secondsBetween(now, lease.ends))}</small>}
        <span class="since">{duration(secondsBetween(lease.since, now))}</span>
      </td>
    </tr>
  );
}

function Leases({ gpu, leases, found, now }: { gpu: Gpu; leases: Lease[]; found: Finding[]; now: string }) {
  const rows = leases.flatMap((lease) => lease.gpus.filter((share) => share.uuid === gpu.uuid).map((share) => ({ lease, share })));
  const here = found.filter((finding) => finding.gpu_uuid === gpu.uuid);
  const strangers = here.filter((finding) => finding.kind === "unreserved_use" || finding.kind === "foreign_use");
  if (rows.length + strangers.length === 0) return <p class="none">No leases.</p>;
  return (
    <table class="leases">
      <caption class="hidden">Leases on GPU {gpu.label}</caption>
      <thead>
        <tr><th scope="col">Lease</th><th scope="col">User</th><th scope="col" class="number">GiB</th><th scope="col" class="number">For</th></tr>
      </thead>
      <tbody>
        {rows.map(({ lease, share }) => <LeaseRow key={lease.lease_id} lease={lease} share={share} findings={here.filter((finding) => finding.lease_id === lease.lease_id)} now={now} />)}
        {strangers.map((finding) => <StrangerRow key={`${finding.kind} ${finding.user} ${finding.since}`} finding={finding} now={now} />)}
      </tbody>
    </table>
  );
}

function GpuPanel({ gpu, now, trend }: { gpu: Gpu; now: Now; trend: Figures | undefined }) {
  const id = `gpu-${gpu.uuid}`;
  const bookings = (now.bookings ?? []).filter((booking) => booking.labels.includes(gpu.label));
  const usual = gpu.clock_limits.filter((limit) => USUAL_LIMITS.has(limit));
  return (
    <section class="gpu" aria-labelledby={id}>
      <div class="title">
        <h3 id={id}>GPU {gpu.label}</h3>
        <span class="model">{gpu.name}</span>
        <span class={`state ${gpu.state}`}>{stateText(gpu.state)}</span>
        <DrainAction label={gpu.label} draining={gpu.state === "draining"} />
      </div>
      <MemoryBar gpu={gpu} />
      {!gpu.is_instance && <Board gpu={gpu} trend={trend} />}
      {bookings.map((booking) => (
        <p key={booking.request_id} class="none">Booked from {clock(booking.begins, now.time)} to {clock(booking.ends, now.time)} by {booking.user}.</p>
      ))}
      {usual.length > 0 && <p class="none">{clocksText(usual)}</p>}
      {troublesOf(gpu).map((text) => <p key={text} class="trouble">{text}</p>)}
      {now.leases
        ? <Leases gpu={gpu} leases={now.leases} found={now.found ?? []} now={now.time} />
        : <p class="none">{plural(gpu.leases, "lease")}{gpu.takes_turns ? `, in turns; ${gpu.waiting_for_turn} waiting for the turn` : ""}.</p>}
    </section>
  );
}

function Total({ name, value, of }: { name: string; value: string; of: string }) {
  return <div><dt>{name}</dt><dd><b>{value}</b> {of}</dd></div>;
}

function Totals({ now, gpus }: { now: Now; gpus: Gpu[] }) {
  const whole = gpus.filter((gpu) => !gpu.is_instance);
  const sum = (amount: (gpu: Gpu) => number | null) => whole.reduce((total, gpu) => total + (amount(gpu) ?? 0), 0);
  const busy = whole.filter((gpu) => gpu.utilisation_percent !== null);
  const load = busy.length > 0 ? Math.round(sum((gpu) => gpu.utilisation_percent) / busy.length).toString() : "–";
  const leases = Object.values(now.leases_by_kind ?? {}).reduce((total, count) => total + count, 0);
  const waiting = now.queue?.waiting ?? 0;
  const findings = Object.entries(now.findings ?? {}).map(([kind, count]) => `${count} ${findingText(kind)}`);
  return (
    <dl class="totals">
      <Total name="Utilisation" value={load} of="% on average" />
      <Total name="Memory" value={gib(sum((gpu) => gpu.used_bytes))} of={`of ${gib(sum((gpu) => gpu.memory_bytes))} GiB`} />
      <Total name="Power" value={(sum((gpu) => gpu.power_mw) / 1e6).toFixed(2)} of={`of ${(sum((gpu) => gpu.power_limit_mw) / 1e6).toFixed(1)} kW`} />
      <Total name="Leases" value={leases.toString()} of={Object.entries(now.leases_by_share ?? {}).map(([share, count]) => `${count} ${share}`).join(", ")} />
      <Total name="Queue" value={waiting.toString()} of="waiting" />
      {findings.length > 0 && <Total name="Findings" value="" of={findings.join(", ")} />}
    </dl>
  );
}

// The cards of more GPUs do not fit on one screen.
const MOST_CARDS = 4;
const LOOKS = [{ value: "overview", text: "Overview" }, { value: "details", text: "Details" }] as const;
type Look = (typeof LOOKS)[number]["value"];
// The reader's choice, until the page is loaded again.
let chosen: Look | null = null;

export function NowView({ now }: { now: Now }) {
  const trends = useTrends(now);
  const gpus = now.gpus ?? [];
  const [look, setLook] = useState<Look | null>(chosen);
  const shown = look ?? (gpus.length > MOST_CARDS ? "overview" : "details");
  const choose = (value: Look) => { chosen = value; setLook(value); };
  return (
    <>
      {now.daemon.driver_ok === false && <p class="trouble">The driver does not answer gpurotad.</p>}
      {now.daemon.store_ok === false && <p class="trouble">gpurotad cannot store leases: new ones are refused.</p>}
      <div class="above">
        <Totals now={now} gpus={gpus} />
        <div class="choices">
          {gpus.length > 1 && <Choice name="look" legend="How much is shown" options={LOOKS} value={shown} onChoose={choose} />}
          <ReserveAction />
        </div>
      </div>
      {shown === "overview" && gpus.length > 0 && <Compact gpus={gpus} now={now} />}
      {shown === "details" && (
        <div class="gpus">
          {gpus.map((gpu) => <GpuPanel key={gpu.uuid} gpu={gpu} now={now} trend={trends.get(gpu.uuid)} />)}
        </div>
      )}
      {gpus.length === 0 && <p class="empty">This machine has no GPU that gpurotad can see.</p>}
    </>
  );
}
