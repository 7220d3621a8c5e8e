// All GPUs at a glance: a row each, as `gpurota status` has them. On a phone the table is a list.
import { useSignedIn } from "./actions";
import type { Gpu, Lease, Now } from "./api";
import { gib, plural } from "./format";
import { Bar } from "./memory";
import { availableOn, isFree, stateText } from "./room";

function Users({ leases }: { leases: Lease[] }) {
  const uid = useSignedIn()?.uid;
  const users = new Map<string, boolean>();
  for (const lease of leases) users.set(lease.user, users.get(lease.user) || (uid !== undefined && lease.uid === uid));
  return <>{[...users].map(([user, mine], i) => <span key={user}>{i > 0 && ", "}<span class={mine ? "own" : ""}>{user}</span></span>)}</>;
}

function Row({ gpu, now }: { gpu: Gpu; now: Now }) {
  const available = availableOn(gpu);
  const leases = now.leases?.filter((lease) => lease.gpus.some((share) => share.uuid === gpu.uuid));
  return (
    <tr class={isFree(gpu) ? "has-room" : ""}>
      <th scope="row">GPU {gpu.label}</th>
      <td class="state-of"><span class={`state ${gpu.state}`}>{stateText(gpu.state)}</span></td>
      <td class={`number room ${available ? "" : "is-none"}`}><b>{available === null ? "?" : gib(available)}</b> GiB free</td>
      <td class="bar-of"><Bar gpu={gpu} /></td>
      <td class="number used">{gpu.used_bytes === null ? "?" : gib(gpu.used_bytes)}<span class="limit"> / {gib(gpu.memory_bytes)}</span></td>
      <td class="number load">{gpu.utilisation_percent === null ? "–" : `${gpu.utilisation_percent} %`}</td>
      <td class="users">{leases ? <Users leases={leases} /> : gpu.leases > 0 && plural(gpu.leases, "lease")}</td>
    </tr>
  );
}

export function Compact({ gpus, now }: { gpus: Gpu[]; now: Now }) {
  return (
    <div class="panel">
      <table class="compact">
        <caption class="hidden">GPUs</caption>
        <thead>
          <tr>
            <th scope="col">GPU</th><th scope="col">State</th><th scope="col" class="number">For a slice</th><th scope="col">Memory</th>
            <th scope="col" class="number">GiB in use</th><th scope="col" class="number">Load</th><th scope="col">{now.leases ? "Users" : "Leases"}</th>
          </tr>
        </thead>
        <tbody>{gpus.map((gpu) => <Row key={gpu.uuid} gpu={gpu} now={now} />)}</tbody>
      </table>
    </div>
  );
}
