// Events: what happened in the last day, the newest first.
import { useEffect, useState } from "preact/hooks";
import { useSignedIn } from "./actions";
import { ask, type Event, type Events as Answer, showsNames } from "./api";
import { clockSeconds, words } from "./format";
import { call } from "./session";

const PERIOD_MS = 5000;

const DAY_MS = 24 * 3600 * 1000;

// The events as `gpurota events` shows them to the user who is signed in, the newest first.
async function ownEvents(): Promise<Answer> {
  const { events } = await call<{ events: Event[] }>("Events", { since: new Date(Date.now() - DAY_MS).toISOString() });
  return { level: "signed-in", events: events.reverse() };
}

// Asks every few seconds while the daemon is there.
function useEvents(live: boolean): { answer: Answer | null; error: string } {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState("");
  const session = useSignedIn();
  // A user who signs out no longer sees what the session showed.
  useEffect(() => setAnswer(null), [session?.session_id]);
  useEffect(() => {
    if (!live) return;
    let wanted = true;
    const load = () => {
      if (document.hidden) return;
      (session ? ownEvents() : ask<Answer>("api/events")).then(
        (got) => { if (wanted) { setAnswer(got); setError(""); } },
        (reason: Error) => { if (wanted) setError(reason.message); },
      );
    };
    load();
    const timer = window.setInterval(load, PERIOD_MS);
    return () => { wanted = false; window.clearInterval(timer); };
  }, [live, session?.session_id]);
  return { answer, error };
}

const BAD = new Set(["gpu_error", "process_stopped", "grant_denied", "call_denied", "finding_begun", "booking_missed", "turn_trouble"]);

function EventRow({ event, named }: { event: Event; named: boolean }) {
  return (
    <tr class={BAD.has(event.type) ? "bad" : ""}>
      <td class="time"><time dateTime={event.time}>{clockSeconds(event.time)}</time></td>
      <td class="type">{words(event.type)}{event.count > 1 && ` ×${event.count}`}</td>
      <td>{named ? event.message : event.gpu !== null ? `GPU ${event.gpu}` : ""}</td>
    </tr>
  );
}

export function Events({ live }: { live: boolean }) {
  const { answer, error } = useEvents(live);
  const [search, setSearch] = useState("");
  const named = showsNames(answer?.level);
  const wanted = search.trim().toLowerCase();
  const events = (answer?.events ?? []).filter((event) => `${words(event.type)} ${event.message ?? ""}`.toLowerCase().includes(wanted));
  return (
    <>
      <p class="tools">
        <label>Show events with <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} /></label>
      </p>
      {error !== "" && <p class="trouble">The events cannot be had: {error}.</p>}
      {answer && events.length === 0 && <p class="empty">{wanted ? "No event of the last day has that." : "Nothing happened in the last day."}</p>}
      {events.length > 0 && (
        <div class="panel">
          <table class="events">
            <caption class="hidden">Events of the last day</caption>
            <thead><tr><th scope="col">Time</th><th scope="col">Event</th><th scope="col">{named ? "What happened" : "GPU"}</th></tr></thead>
            <tbody>{events.map((event) => <EventRow key={event.event_id} event={event} named={named} />)}</tbody>
          </table>
        </div>
      )}
      {answer && !named && <p class="empty">Sign in to see events of leases.</p>}
    </>
  );
}
