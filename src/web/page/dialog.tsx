// A question, or a small form, in front of the page: the browser's own dialog, so that Escape closes it, the focus stays in it and comes back after it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { refresh } from "./mine";

interface Props {
  title: string;
  action: string; // what the button says
  danger?: boolean;
  onDo: () => Promise<unknown>;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, action, danger, onDo, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  // Opens the dialog before the next key press. With useEffect, which runs after painting, an
  // Escape would be lost.
  useLayoutEffect(() => { dialog.current?.showModal(); }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    setBusy(true);
    onDo().then(
      () => { refresh(); dialog.current?.close(); },
      (reason: Error) => { setError(reason.message); setBusy(false); },
    );
  };
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={onClose}>
      <form onSubmit={submit}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        <p role="alert" class={error === "" ? "hidden" : "trouble"}>{error}</p>
        <p class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>Close</button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>{action}</button>
        </p>
      </form>
    </dialog>
  );
}
