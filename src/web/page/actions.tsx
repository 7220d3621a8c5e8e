// The actions of the signed-in user on a lease, a request, a booking and, for administrators, a
// GPU.
import { createContext, type JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import type { Lease, Request } from "./api";
import { Dialog } from "./dialog";
import { NumberField, TextField } from "./fields";
import { call, type Session } from "./session";

export const SessionContext = createContext<Session | null>(null);
export function useSignedIn(): Session | null { return useContext(SessionContext); }

const HOUR = 3600;

// A button that opens a dialog.
function Opens({ text, label, dialog }: { text: string; label: string; dialog: (close: () => void) => JSX.Element }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="small" aria-label={label} onClick={() => setOpen(true)}>{text}</button>
      {open && dialog(() => setOpen(false))}
    </>
  );
}

function Extend({ lease, onClose }: { lease: Lease; onClose: () => void }) {
  const [hours, setHours] = useState(2);
  return (
    <Dialog title={`Extend ${lease.lease_id}`} action="Extend" onClose={onClose}
      onDo={() => call("Update", { lease_id: lease.lease_id, seconds: Math.round(hours * HOUR) })}>
      <NumberField label="It ends in" value={hours} least={0.5} most={8760} step={0.5} unit="hours from now" onChange={setHours} />
    </Dialog>
  );
}

interface EndProps {
  title: string;
  text: string;
  action: string;
  own: boolean; // false: it belongs to another user, who gets the reason
  method: string;
  what: object;
  onClose: () => void;
}

function End({ title, text, action, own, method, what, onClose }: EndProps) {
  const [reason, setReason] = useState("");
  return (
    <Dialog title={title} action={action} danger onClose={onClose} onDo={() => call(method, { ...what, ...(reason === "" ? {} : { reason }) })}>
      <p>{text}</p>
      {!own && <TextField label="Reason" value={reason} onChange={setReason} />}
    </Dialog>
  );
}

function processesText(count: number): string {
  if (count === 0) return "Nothing runs under it.";
  return count === 1 ? "Its process is ended." : `Its ${count} processes are ended.`;
}

export function LeaseActions({ lease }: { lease: Lease }) {
  const session = useSignedIn();
  const own = session?.uid === lease.uid;
  if (!session || !(own || session.administrator) || lease.state === "ending") return null;
  const id = lease.lease_id;
  return (
    <span class="actions">
      {lease.ends && <Opens text="Extend" label={`Extend ${id}`} dialog={(close) => <Extend lease={lease} onClose={close} />} />}
      <Opens text="Release" label={`Release ${id}`} dialog={(close) => (
        <End title={own ? `Release ${id}?` : `Release ${id} of ${lease.user}?`} text={processesText(lease.processes ?? 0)} action="Release" own={own}
          method="Release" what={{ lease_id: id }} onClose={close} />
      )} />
    </span>
  );
}

export function CancelAction({ request, kind }: { request: Pick<Request, "request_id" | "user" | "uid">; kind: "request" | "booking" }) {
  const session = useSignedIn();
  const own = session?.uid === request.uid;
  if (!session || !(own || session.administrator)) return null;
  const id = request.request_id;
  return (
    <span class="actions">
      <Opens text="Cancel" label={`Cancel ${id}`} dialog={(close) => (
        <End title={own ? `Cancel ${id}?` : `Cancel ${id} of ${request.user}?`} action="Cancel it" own={own} method="Cancel" what={{ request_id: id }}
          text={kind === "booking" ? "Its GPUs are no longer kept." : "The program that waits is told, and ends."} onClose={close} />
      )} />
    </span>
  );
}

export function DrainAction({ label, draining }: { label: string; draining: boolean }) {
  const session = useSignedIn();
  if (!session?.administrator) return null;
  const what = { gpu_ids: [label] };
  if (!draining) {
    return <Opens text="Drain" label={`Drain GPU ${label}`} dialog={(close) => (
      <End title={`Take GPU ${label} out of service?`} text="No new lease gets it. Current leases continue." action="Drain" own={false} method="Drain" what={what} onClose={close} />
    )} />;
  }
  return <Opens text="Undrain" label={`Undrain GPU ${label}`} dialog={(close) => (
    <Dialog title={`Put GPU ${label} back into service?`} action="Undrain" onClose={close} onDo={() => call("Undrain", what)}><p>New leases get it again.</p></Dialog>
  )} />;
}
