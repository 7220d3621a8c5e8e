// Jobs of the user who is signed in: their state, what can be done with them, and what they print.
import { useState } from "preact/hooks";
import type { Reason } from "./api";
import { Dialog } from "./dialog";
import { duration, plural, secondsBetween } from "./format";
import { countOf, type ItemCounts, ItemRows, type Run, runText } from "./items";
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
  runs: Run[];
  items?: ItemCounts | null;
}

type Action = "start" | "stop" | "restart" | "retry";

// A job, or an item of it.
interface Which {
  name: string;
  item?: number;
}

const PERIOD_MS = 2000;
const IDLE = new Set(["stopped", "finished", "failed", "cancelled"]);
const TITLES: Record<Action, string> = { start: "Start", stop: "Stop", restart: "Restart", retry: "Restart failed" };
const WHAT_HAPPENS: Record<Action, string> = {
  start: "It waits for its GPUs, as everybody does.",
  stop: "Its processes are ended.",
  restart: "Its processes are ended.",
  retry: "The items that did not end well start again, and wait for their GPUs.",
};

// A running array starts its items by itself. Items that have failed can be started again.
function actionsOf(job: Job): Action[] {
  const idle = IDLE.has(job.state);
  if (!job.items) return idle ? ["start"] : ["restart", "stop"];
  const bad = job.items.failed + job.items.unknown + job.items.cancelled;
  return [...(bad > 0 ? ["retry" as const] : []), idle ? "start" : "stop"];
}

function isOf(one: Which | null, name: string, item?: number): boolean {
  return one !== null && one.name === name && one.item === item;
}

function called({ name, item }: Which): string { return item === undefined ? name : `${name}[${item}]`; }

interface RowProps {
  job: Job;
  now: string;
  shown: boolean;
  unfolded: boolean;
  onAct: (action: Action) => void;
  onLog: () => void;
  onUnfold: () => void;
}

function JobRow({ job, now, shown, unfolded, onAct, onLog, onUnfold }: RowProps) {
  const remarks = [reasonText(job, now), job.failures > 0 ? `${plural(job.failures, "failure")} in a row` : "", runText(job.runs)].filter((text) => text !== "");
  const command = job.items && job.command.length === 0 ? plural(countOf(job.items), "command") : job.command.join(" ");
  return (
    <tr>
      <th scope="row" class="who">{job.name}<small>{command}</small></th>
      <td><span class={`state ${job.state}`}>{job.state}</span><small>{remarks.join(" · ")}</small></td>
      <td class="number">{job.since ? duration(secondsBetween(job.since, now)) : "–"}<small>{job.lease_id ?? (job.position ? `${job.position}. in the queue` : "")}</small></td>
      <td class="number">
        <span class="actions">
          {actionsOf(job).map((action) => <button key={action} type="button" class="small" aria-label={`${TITLES[action]} ${job.name}`} onClick={() => onAct(action)}>{TITLES[action]}</button>)}
          {job.items
            ? <button type="button" class="small" aria-expanded={unfolded} aria-label={`Items of ${job.name}`} onClick={onUnfold}>Items</button>
            : <button type="button" class="small" aria-expanded={shown} aria-label={`Output of ${job.name}`} onClick={onLog}>Output</button>}
        </span>
      </td>
    </tr>
  );
}

function useJobs(uid: number): { jobs: Job[] | null; error: string; asked: number; again: () => void } {
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
  return { jobs, error, asked, again: () => setAsked((count) => count + 1) };
}

export function JobsView({ now, uid }: { now: string; uid: number }) {
  const { jobs, error, asked, again } = useJobs(uid);
  const [acts, setActs] = useState<(Which & { action: Action }) | null>(null);
  const [shown, setShown] = useState<Which | null>(null);
  const [unfolded, setUnfolded] = useState<string | null>(null);
  const user = String(uid);
  const show = (which: Which) => setShown(isOf(shown, which.name, which.item) ? null : which);
  const act = ({ name, item, action }: Which & { action: Action }) =>
    call("ControlJob", action === "retry" ? { name, user, action: "restart", unfinished: true } : { name, user, item, action }).then(again);
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
              {jobs.map((job) => [
                <JobRow key={job.name} job={job} now={now} shown={isOf(shown, job.name)} unfolded={unfolded === job.name}
                  onAct={(action) => setActs({ name: job.name, action })} onLog={() => show({ name: job.name })}
                  onUnfold={() => setUnfolded(unfolded === job.name ? null : job.name)} />,
                job.items && unfolded === job.name && (
                  <ItemRows key={`${job.name} items`} name={job.name} user={user} now={now} asked={asked} shown={shown?.name === job.name ? shown.item ?? null : null}
                    onAct={(action, item) => setActs({ name: job.name, item, action })} onLog={(item) => show({ name: job.name, item })} />
                ),
              ])}
            </tbody>
          </table>
        </div>
      )}
      {shown !== null && <JobLog key={called(shown)} name={shown.name} item={shown.item} user={user} onClose={() => setShown(null)} />}
      {acts && (
        <Dialog title={`${TITLES[acts.action]} ${called(acts)}?`} action={TITLES[acts.action]} danger={acts.action === "stop" || acts.action === "restart"} onClose={() => setActs(null)}
          onDo={() => act(acts)}>
          <p>{WHAT_HAPPENS[acts.item !== undefined && acts.action === "restart" ? "start" : acts.action]}</p>
        </Dialog>
      )}
    </>
  );
}
