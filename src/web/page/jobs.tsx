// Jobs of the user who is signed in: their state, what can be done with them, and what they print.
import { useState } from "preact/hooks";
import type { Reason } from "./api";
import { Dialog } from "./dialog";
import { duration, plural, secondsBetween, words } from "./format";
import { JobLog } from "./joblog";
import { usePeriodically } from "./mine";
import { reasonText } from "./reasons";
import { call } from "./session";

interface Job {
  name: string;
  uid: number;
  state: string;
  detail: string | null;
  wait_reason?: Reason | null;
  command: string[];
  since: string | null;
  lease_id: string | null;
  position: number | null;
  failures: number;
  runs: { reason: string; code: number }[];
}

type Action = "start" | "stop" | "restart";

const PERIOD_MS = 2000;
const IDLE = new Set(["stopped", "finished", "failed", "cancelled"]);
const TITLES: Record<Action, string> = { start: "Start", stop: "Stop", restart: "Restart" };

function lastEnd(job: Job): string {
  const last = job.runs[job.runs.length - 1];
  if (!last) return "";
  return `last run: ${words(last.reason)}${last.reason === "exited" ? ` with ${last.code}` : ""}`;
}

interface RowProps {
  job: Job;
  now: string;
  shown: boolean;
  onAct: (action: Action) => void;
  onLog: () => void;
}

function JobRow({ job, now, shown, onAct, onLog }: RowProps) {
  const actions: Action[] = IDLE.has(job.state) ? ["start"] : ["restart", "stop"];
  const remarks = [reasonText(job, now), job.failures > 0 ? `${plural(job.failures, "failure")} in a row` : "", lastEnd(job)].filter((text) => text !== "");
  return (
    <tr>
      <th scope="row" class="who">{job.name}<small>{job.command.join(" ")}</small></th>
      <td><span class={`state ${job.state}`}>{job.state}</span><small>{remarks.join(" · ")}</small></td>
      <td class="number">{job.since ? duration(secondsBetween(job.since, now)) : "–"}<small>{job.lease_id ?? (job.position ? `${job.position}. in the queue` : "")}</small></td>
      <td class="number">
        <span class="actions">
          {actions.map((action) => <button key={action} type="button" class="small" aria-label={`${TITLES[action]} ${job.name}`} onClick={() => onAct(action)}>{TITLES[action]}</button>)}
          <button type="button" class="small" aria-expanded={shown} aria-label={`Output of ${job.name}`} onClick={onLog}>Output</button>
        </span>
      </td>
    </tr>
  );
}

function useJobs(uid: number): { jobs: Job[] | null; error: string; again: () => void } {
  const [jobs, setJobs] = useState<Job[] | null>(null);
  const [error, setError] = useState("");
  const [asked, setAsked] = useState(0);
  usePeriodically(async (wanted) => {
    try {
      const answer = await call<{ jobs: Job[] }>("ListJobs", { user: String(uid) });
      if (wanted()) { setJobs(answer.jobs); setError(""); }
    } catch (reason) {
      if (wanted()) setError((reason as Error).message);
    }
  }, PERIOD_MS, true, asked);
  return { jobs, error, again: () => setAsked((count) => count + 1) };
}

export function JobsView({ now, uid }: { now: string; uid: number }) {
  const { jobs, error, again } = useJobs(uid);
  const [acts, setActs] = useState<{ name: string; action: Action } | null>(null);
  const [shown, setShown] = useState<string | null>(null);
  const user = String(uid);
  return (
    <>
      {error !== "" && <p class="trouble">The jobs cannot be had: {error}.</p>}
      {jobs?.length === 0 && <p class="empty">You have no jobs. <code>gpurota job add NAME -- COMMAND</code> adds one.</p>}
      {jobs && jobs.length > 0 && (
        <div class="panel">
          <table class="jobs">
            <caption>Your jobs</caption>
            <thead>
              <tr><th scope="col">Job</th><th scope="col">State</th><th scope="col" class="number">For</th><th scope="col" class="number"><span class="hidden">Actions</span></th></tr>
            </thead>
            <tbody>
              {jobs.map((job) => (
                <JobRow key={job.name} job={job} now={now} shown={job.name === shown} onAct={(action) => setActs({ name: job.name, action })}
                  onLog={() => setShown(job.name === shown ? null : job.name)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown !== null && <JobLog key={shown} name={shown} user={user} onClose={() => setShown(null)} />}
      {acts && (
        <Dialog title={`${TITLES[acts.action]} ${acts.name}?`} action={TITLES[acts.action]} danger={acts.action !== "start"} onClose={() => setActs(null)}
          onDo={() => call("ControlJob", { ...acts, user }).then(again)}>
          <p>{acts.action === "start" ? "It waits for its GPUs, as everybody does." : "Its processes are ended."}</p>
        </Dialog>
      )}
    </>
  );
}
