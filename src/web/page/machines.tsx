// Machines: what each machine of the fleet has free, those with free GPUs first. A machine that
// does not answer is marked.
import { useState } from "preact/hooks";
import { ask, type Machine } from "./api";
import { gib, plural } from "./format";
import { usePeriodically } from "./mine";

const PERIOD_MS = 2000;
// A machine with more GPUs than this gets no square for each GPU.
const MOST_SQUARES = 32;

const KINDS = [
  { key: "free", text: "free" },
  { key: "shared", text: "with room" },
  { key: "full", text: "full" },
  { key: "unavailable", text: "out of service" },
] as const;

function isUp(machine: Machine): boolean { return machine.state === "answers" && machine.daemon_up === true; }

// Machines where a program would start soonest come first; machines that do not answer come last.
function byRoom(a: Machine, b: Machine): number {
  const rank = (machine: Machine) => (isUp(machine) ? 0 : machine.state === "asked" ? 1 : 2);
  return rank(a) - rank(b)
    || (b.free ?? 0) - (a.free ?? 0)
    || (b.available_bytes ?? 0) - (a.available_bytes ?? 0)
    || (a.waiting ?? 0) - (b.waiting ?? 0)
    || a.name.localeCompare(b.name, undefined, { numeric: true });
}

function useMachines(): { machines: Machine[] | null; error: string } {
  const [machines, setMachines] = useState<Machine[] | null>(null);
  const [error, setError] = useState("");
  usePeriodically(async (wanted) => {
    try {
      const answer = await ask<{ machines: Machine[] }>("api/machines");
      if (wanted()) { setMachines([...answer.machines].sort(byRoom)); setError(""); }
    } catch (reason) {
      if (wanted()) setError((reason as Error).message);
    }
  }, PERIOD_MS, true, 0);
  return { machines, error };
}

function Gpus({ machine }: { machine: Machine }) {
  const gpus = machine.gpus ?? 0;
  const kinds = KINDS.map((kind) => ({ ...kind, count: machine[kind.key] ?? 0 }));
  const others = kinds.filter((kind) => kind.key !== "free" && kind.count > 0).map((kind) => `${kind.count} ${kind.text}`);
  return (
    <>
      <span class="value"><b class={machine.free ? "some" : ""}>{machine.free}</b> of {gpus} free</span>
      <span class={gpus <= MOST_SQUARES ? "squares" : "bar"} aria-hidden="true">
        {gpus <= MOST_SQUARES
          ? kinds.flatMap((kind) => Array.from({ length: kind.count }, (_, i) => <span key={`${kind.key}${i}`} class={`square is-${kind.key}`} />))
          : kinds.filter((kind) => kind.count > 0).map((kind) => <span key={kind.key} class={`square is-${kind.key}`} style={{ width: `${(100 * kind.count) / gpus}%` }} />)}
      </span>
      <small>{others.join(", ")}</small>
    </>
  );
}

function Memory({ machine }: { machine: Machine }) {
  const total = machine.memory_bytes ?? 0;
  const used = machine.used_bytes ?? 0;
  return (
    <>
      <span class="value"><b>{gib(machine.available_bytes ?? 0)}</b> GiB available</span>
      <span class="bar" aria-hidden="true">{used > 0 && total > 0 && <span class="part slices" style={{ width: `${Math.min(100, (100 * used) / total)}%` }} />}</span>
      <small>{gib(used)} of {gib(total)} GiB in use</small>
    </>
  );
}

function modelsText(machine: Machine): string {
  return (machine.models ?? []).map((model) => `${model.gpus} × ${model.name.replace(/^NVIDIA /, "")}`).join(", ");
}

function Name({ machine }: { machine: Machine }) {
  return (
    <th scope="row" class="machine">
      {machine.here ? <a href="#now">{machine.name || "this machine"}</a> : <a href={machine.url} rel="noreferrer">{machine.name}</a>}
      {machine.here && <span class="tag">this one</span>}
      <small>{modelsText(machine)}</small>
    </th>
  );
}

function Silent({ machine, named }: { machine: Machine; named: boolean }) {
  const why = machine.state === "asked" ? "asking…" : machine.state === "fails" ? machine.error ?? "" : "its gpurotad does not answer";
  return (
    <tr class={machine.state === "asked" ? "" : "fails"}>
      <Name machine={machine} />
      <td colSpan={named ? 6 : 5} class="why">{machine.state === "asked" ? why : <span class="trouble">{why}</span>}</td>
    </tr>
  );
}

function Row({ machine, named }: { machine: Machine; named: boolean }) {
  if (!isUp(machine)) return <Silent machine={machine} named={named} />;
  const load = machine.utilisation_percent;
  const waiting = machine.waiting ?? 0;
  return (
    <tr>
      <Name machine={machine} />
      <td class="gpus-of"><Gpus machine={machine} /></td>
      <td class="memory-of"><Memory machine={machine} /></td>
      <td class="number"><span class="label">Utilisation </span>{typeof load === "number" ? <><b>{load}</b> %</> : "–"}</td>
      <td class="number"><span class="label">Leases </span><b>{machine.leases}</b></td>
      <td class="number"><span class="label">Waiting </span>{waiting > 0 ? <b>{waiting}</b> : "–"}</td>
      {named && <td class="users"><small>{(machine.users ?? []).join(", ")}</small></td>}
    </tr>
  );
}

function Total({ name, value, of }: { name: string; value: string; of: string }) {
  return <div><dt>{name}</dt><dd><b>{value}</b> {of}</dd></div>;
}

function Totals({ machines }: { machines: Machine[] }) {
  const up = machines.filter(isUp);
  const sum = (amount: (machine: Machine) => number | undefined) => up.reduce((total, machine) => total + (amount(machine) ?? 0), 0);
  return (
    <dl class="totals">
      <Total name="Free GPUs" value={String(sum((machine) => machine.free))} of={`of ${sum((machine) => machine.gpus)}`} />
      <Total name="With room" value={String(sum((machine) => machine.shared))} of="for a slice, or in turns" />
      <Total name="Available memory" value={gib(sum((machine) => machine.available_bytes))} of="GiB" />
      <Total name="Queues" value={String(sum((machine) => machine.waiting))} of="waiting" />
      <Total name="Machines" value={String(up.length)} of={`of ${machines.length} answer`} />
    </dl>
  );
}

export function MachinesView() {
  const { machines, error } = useMachines();
  const named = machines?.some((machine) => (machine.users ?? []).length > 0) ?? false;
  if (!machines) return error === "" ? <p class="empty">Asking…</p> : <p class="trouble">The machines cannot be had: {error}.</p>;
  return (
    <>
      {error !== "" && <p class="trouble">The machines cannot be had: {error}.</p>}
      <Totals machines={machines} />
      <div class="panel">
        <table class={`machines ${named ? "is-named" : ""}`}>
          <caption>{plural(machines.length, "machine")}, those with free GPUs first</caption>
          <thead>
            <tr>
              <th scope="col">Machine</th><th scope="col">GPUs</th><th scope="col">Memory</th>
              <th scope="col" class="number">Utilisation</th><th scope="col" class="number">Leases</th><th scope="col" class="number">Waiting</th>
              {named && <th scope="col">Users</th>}
            </tr>
          </thead>
          <tbody>{machines.map((machine) => <Row key={machine.here ? "" : machine.url} machine={machine} named={named} />)}</tbody>
        </table>
      </div>
      <p class="empty legend-line">
        {KINDS.map((kind) => <span key={kind.key}><span class={`square is-${kind.key}`} aria-hidden="true" /> {kind.text}</span>)}
        {" "}<code>gpurota run --host NAME</code> starts a program on a machine.
      </p>
    </>
  );
}
