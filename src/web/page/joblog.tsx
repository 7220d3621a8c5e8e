// The end of what a job prints, as it comes.
import { useEffect, useRef, useState } from "preact/hooks";
import { usePeriodically } from "./mine";
import { call } from "./session";

interface Part {
  text: string;
  cursor: string;
  missed: boolean;
}

const PERIOD_MS = 1000;
const MOST_BYTES = 64 * 1024;

// `item`: the index of an item of an array.
function useLog(name: string, item: number | undefined, user: string): { text: string; error: string } {
  const [log, setLog] = useState({ text: "", error: "" });
  const cursor = useRef<string | null>(null);
  usePeriodically(async (wanted) => {
    try {
      const from = cursor.current === null ? { bytes: MOST_BYTES } : { cursor: cursor.current };
      const part = await call<Part>("ReadJobLog", { name, item, user, ...from });
      if (!wanted()) return;
      cursor.current = part.cursor;
      if (part.text !== "" || part.missed) setLog((old) => ({ text: (old.text + (part.missed ? "…\n" : "") + part.text).slice(-MOST_BYTES), error: "" }));
    } catch (error) {
      if (wanted()) setLog((old) => ({ ...old, error: (error as Error).message }));
    }
  }, PERIOD_MS, true, `${name} ${item ?? ""}`);
  return log;
}

export function JobLog({ name, item, user, onClose }: { name: string; item: number | undefined; user: string; onClose: () => void }) {
  const { text, error } = useLog(name, item, user);
  const called = item === undefined ? name : `${name}[${item}]`;
  const pane = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => { if (pane.current && follows.current) pane.current.scrollTop = pane.current.scrollHeight; }, [text]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = pane.current as HTMLPreElement;
    follows.current = scrollHeight - scrollTop - clientHeight < 30;
  };
  return (
    <section class="panel log" aria-labelledby="log-title">
      <div class="title">
        <h3 id="log-title">Output of {called}</h3>
        <button type="button" class="small" onClick={onClose}>Close</button>
      </div>
      {error !== "" && <p class="trouble">The output cannot be had: {error}.</p>}
      <pre ref={pane} role="log" aria-live="off" tabIndex={0} aria-labelledby="log-title" onScroll={onScroll}>{text === "" ? "It has printed nothing yet." : text}</pre>
    </section>
  );
}
