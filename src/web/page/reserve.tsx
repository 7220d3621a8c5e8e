// The form that reserves GPUs, now or for later.
import { useState } from "preact/hooks";
import { useSignedIn } from "./actions";
import { Dialog } from "./dialog";
import { Field, NumberField, TextField } from "./fields";
import { call } from "./session";

const GIB = 2 ** 30;
const HOUR = 3600;

function ReserveForm({ onClose }: { onClose: () => void }) {
  const [gpus, setGpus] = useState(1);
  const [slice, setSlice] = useState(false);
  const [memory, setMemory] = useState(8);
  const [hours, setHours] = useState(2);
  const [begins, setBegins] = useState("");
  const [note, setNote] = useState("");
  const reserve = () => {
    const request = {
      kind: "reservation", gpus, seconds: Math.round(hours * HOUR),
      ...(slice ? { memory: { bytes: Math.round(memory * GIB) } } : {}),
      ...(note === "" ? {} : { note }),
    };
    return begins === "" ? call("Acquire", { request }) : call("Book", { begins: [new Date(begins).toISOString()], request });
  };
  return (
    <Dialog title="Reserve GPUs" action="Reserve" onDo={reserve} onClose={onClose}>
      <NumberField label="GPUs" value={gpus} least={1} most={256} step={1} onChange={setGpus} />
      <Field label="A slice of each"><input type="checkbox" checked={slice} onChange={(event) => setSlice(event.currentTarget.checked)} /></Field>
      {slice && <NumberField label="Memory of each" value={memory} least={0.5} most={4096} step={0.5} unit="GiB" onChange={setMemory} />}
      <NumberField label="For" value={hours} least={0.5} most={8760} step={0.5} unit="hours" onChange={setHours} />
      <Field label="Begins"><input type="datetime-local" value={begins} onInput={(event) => setBegins(event.currentTarget.value)} /><small>empty: now</small></Field>
      <TextField label="Note" value={note} onChange={setNote} />
      <p class="hint">Run programs under it with <code>gpurota run --lease ID -- COMMAND</code></p>
    </Dialog>
  );
}

export function ReserveAction() {
  const [open, setOpen] = useState(false);
  if (!useSignedIn()) return null;
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>Reserve GPUs</button>
      {open && <ReserveForm onClose={() => setOpen(false)} />}
    </>
  );
}
