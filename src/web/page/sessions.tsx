// Sessions: where the user is signed in at this page, and how to end that; administrators see everybody's.
import { useState } from "preact/hooks";
import { Dialog } from "./dialog";
import { clock, duration, secondsBetween } from "./format";
import { usePeriodically } from "./mine";
import { call, type Session, signOut } from "./session";

interface Listed {
  session_id: string;
  uid: number;
  user: string;
  since: string;
  used: string;
  ends: string;
  from: string | null;
  by_proxy: boolean;
  current: boolean;
}

const PERIOD_MS = 5000;

function useSessions(): { sessions: Listed[] | null; error: string; again: () => void } {
  const [sessions, setSessions] = useState<Listed[] | null>(null);
  const [error, setError] = useState("");
  const [asked, setAsked] = useState(0);
  usePeriodically(async (wanted) => {
    try {
      const answer = await call<{ sessions: Listed[] }>("ListWebSessions");
      if (wanted()) { setSessions(answer.sessions); setError(""); }
    } catch (reason) {
      if (wanted()) setError((reason as Error).message);
    }
  }, PERIOD_MS, true, asked);
  return { sessions, error, again: () => setAsked((count) => count + 1) };
}

interface RowProps {
  session: Listed;
  now: string;
  named: boolean;
  onEnd: () => void;
}

function Row({ session, now, named, onEnd }: RowProps) {
  const { session_id: id, current } = session;
  return (
    <tr class={current ? "mine" : ""}>
      <th scope="row" class="who">{id}{current && <span class="tag">this one</span>}{named && <small class="user">{session.user}</small>}</th>
      <td>{session.from ?? "not known"}<small>{session.by_proxy ? "by the server in front" : ""}</small></td>
      <td class="number"><span class="label">Signed in </span>{clock(session.since, now)}</td>
      <td class="number"><span class="label">Used </span>{duration(secondsBetween(session.used, now))} ago</td>
      <td class="number"><span class="label">Ends </span>{clock(session.ends, now)}</td>
      <td class="number">
        <span class="actions">
          {current
            ? !session.by_proxy && <button type="button" class="small" aria-label={`Sign out ${id}`} onClick={() => void signOut()}>Sign out</button>
            : <button type="button" class="small" aria-label={`End ${id}`} onClick={onEnd}>End</button>}
        </span>
      </td>
    </tr>
  );
}

// Ends the sessions one after the other, with one call for each.
async function endAll(sessions: Listed[]): Promise<void> {
  for (const { session_id } of sessions) await call("EndWebSessions", { session_id });
}

export function SessionsView({ now, session }: { now: string; session: Session }) {
  const { sessions, error, again } = useSessions();
  const [ending, setEnding] = useState<Listed[] | null>(null);
  const named = session.administrator;
  const others = (sessions ?? []).filter((each) => each.uid === session.uid && !each.current);
  const single = ending?.length === 1 ? ending[0] : undefined;
  return (
    <>
      {error !== "" && <p class="trouble">The sessions cannot be had: {error}.</p>}
      {sessions && (
        <div class="panel">
          <table class="sessions">
            <caption>{named ? "Who is signed in at this page" : "Where you are signed in"}</caption>
            <thead>
              <tr>
                <th scope="col">Session</th><th scope="col">From</th><th scope="col" class="number">Signed in</th>
                <th scope="col" class="number">Used</th><th scope="col" class="number">Ends by</th><th scope="col" class="number"><span class="hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>{sessions.map((each) => <Row key={each.session_id} session={each} now={now} named={named} onEnd={() => setEnding([each])} />)}</tbody>
          </table>
        </div>
      )}
      <p class="empty">A session that is not looked at ends earlier. <code>gpurota web --list</code> shows the same in a terminal.</p>
      {others.length > 1 && <button type="button" onClick={() => setEnding(others)}>End all my others</button>}
      {ending && (
        <Dialog title={single ? `End ${single.session_id}${single.uid === session.uid ? "" : ` of ${single.user}`}?` : `End your ${ending.length} other sessions?`}
          action="End" danger onClose={() => setEnding(null)} onDo={() => endAll(ending).then(again)}>
          <p>{single ? `The page at ${single.from ?? "that browser"} is signed out.` : "Those pages are signed out."} Leases and jobs continue.</p>
        </Dialog>
      )}
    </>
  );
}
