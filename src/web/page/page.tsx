// The page: what all views share, and which of them is shown.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Account, OfferedLink, Wall } from "./account";
import { SessionContext } from "./actions";
import type { Now } from "./api";
import { Events } from "./events";
import { plural } from "./format";
import { History } from "./history";
import { type Live, useLive } from "./live";
import { HoursView } from "./hours";
import { JobsView } from "./jobs";
import { MachinesView } from "./machines";
import { useMine } from "./mine";
import { NowView } from "./now";
import { freeText } from "./room";
import { Queue } from "./queue";
import { resume, type Session, useSession } from "./session";
import { SessionsView } from "./sessions";
import { Turns } from "./turns";
import "./page.css";

const VIEWS = ["now", "queue", "jobs", "turns", "history", "hours", "events", "machines"] as const;
// A view without a tab: the user's name links to it.
const SESSIONS = "sessions";
type View = (typeof VIEWS)[number] | typeof SESSIONS;
const TITLES: Record<View, string> = { now: "Now", queue: "Queue", jobs: "Jobs", turns: "Turns", history: "History", hours: "Hours", events: "Events", machines: "Machines", sessions: "Sessions" };

function viewOfAddress(): View {
  const name = window.location.hash.slice(1);
  return name === SESSIONS ? SESSIONS : VIEWS.find((view) => view === name) ?? "now";
}

function useView(): View {
  const [view, setView] = useState(viewOfAddress());
  useEffect(() => {
    const onChange = () => {
      setView(viewOfAddress());
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", onChange);
    return () => window.removeEventListener("hashchange", onChange);
  }, []);
  useEffect(() => {
    document.title = `${TITLES[view]} – gpurota`;
  }, [view]);
  return view;
}

const TROUBLE = {
  "": "",
  connecting: "",
  "signed-out": "",
  daemon: "gpurotad does not answer. The figures below are the last that it gave; this page continues by itself when it is back.",
  connection: "gpurota-web does not answer. The figures below are old; this page continues by itself when it is back.",
};

function Pulse({ trouble }: { trouble: Live["trouble"] }) {
  const text = { "": "live", connecting: "connecting", daemon: "no daemon", connection: "no connection", "signed-out": "" }[trouble];
  return (
    <span class={`pulse ${trouble === "" ? "is-live" : "is-broken"}`}>
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  );
}

function Tabs({ view, now, signedIn }: { view: View; now: Now | null; signedIn: boolean }) {
  const waiting = now?.queue?.waiting ?? 0;
  const shown = (each: View) => (each !== "jobs" || signedIn) && (each !== "machines" || (now?.machines ?? 1) > 1);
  return (
    <nav aria-label="Views">
      {VIEWS.filter(shown).map((each) => (
        <a key={each} href={`#${each}`} aria-current={each === view ? "page" : undefined}>
          {TITLES[each]}
          {each === "queue" && waiting > 0 && <span class="count" aria-label={`, ${waiting} waiting`}>{waiting}</span>}
        </a>
      ))}
    </nav>
  );
}

function Footer({ now }: { now: Now | null }) {
  if (!now?.daemon.version) return null;
  return (
    <footer>
      gpurota {now.daemon.version}
      {now.daemon.driver_version && ` · driver ${now.daemon.driver_version}`}
      {now.gpus && ` · ${plural(now.gpus.length, "GPU")}`}
      {now.level === "signed-in" && " · shown to those who have signed in"}
      {now.level === "totals" && !now.leases && " · shows totals only, no names"}
      {" · "}<a href="licences.txt">licences</a>
    </footer>
  );
}

function Content({ view, live, session }: { view: View; live: Live; session: Session | null }) {
  if (live.trouble === "signed-out") return <Wall />;
  if (view === "history") return <History />;
  if (view === "turns") return <Turns now={live.now} />;
  if (view === "hours") return <HoursView now={live.now} />;
  if (view === "machines") return <MachinesView />;
  if (view === "events") return <Events live={live.trouble === ""} />;
  if (!live.now) return <p class="empty">{live.trouble === "connecting" ? "Connecting…" : "Nothing is known yet."}</p>;
  if (view === SESSIONS) return session ? <SessionsView now={live.now.time} session={session} /> : <p class="empty">Sign in to see where you are signed in.</p>;
  if (view === "jobs") return session ? <JobsView now={live.now.time} uid={session.uid} /> : <p class="empty">Sign in to see your jobs.</p>;
  return view === "queue" ? <Queue now={live.now} /> : <NowView now={live.now} />;
}

function Page() {
  const { session, notice, offer } = useSession();
  const { now, trouble } = useLive(session?.session_id ?? "");
  useEffect(() => { if (now?.sign_in === "proxy") void resume(); }, [now?.sign_in]);
  const live = { now: useMine(now, session), trouble };
  const view = useView();
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>Skip to the content</a>
      <header>
        <h1><img src="icon.svg" alt="" width="22" height="22" /> gpurota</h1>
        {live.trouble === "" && live.now?.gpus && live.now.gpus.length > 0 && <b class="free-line">{freeText(live.now.gpus)}</b>}
        {trouble !== "signed-out" && <Tabs view={view} now={live.now} signedIn={session !== null} />}
        {trouble !== "signed-out" && <Pulse trouble={live.trouble} />}
        <Account session={session} canSignIn={trouble === "signed-out" || live.now?.sign_in === "link" || live.now?.sign_in === "proxy"} />
      </header>
      <div role="status" class="banner" hidden={TROUBLE[live.trouble] === ""}>{TROUBLE[live.trouble]}</div>
      <div role="status" class="banner is-notice" hidden={notice === ""}>{notice}</div>
      {offer && <OfferedLink key={offer.secret} offer={offer} session={session} />}
      <main id="content" tabIndex={-1} class={TROUBLE[live.trouble] === "" ? "" : "is-old"}>
        <h2 class="hidden">{TITLES[view]}</h2>
        <SessionContext.Provider value={session}><Content view={view} live={live} session={session} /></SessionContext.Provider>
      </main>
      <Footer now={live.now} />
    </>
  );
}

const root = document.getElementById("page");
if (root) render(<Page />, root);
