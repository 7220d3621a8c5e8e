// The page: what all views share, and which of them is shown.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Now } from "./api";
import { Events } from "./events";
import { plural } from "./format";
import { History } from "./history";
import { type Live, useLive } from "./live";
import { HoursView } from "./hours";
import { NowView } from "./now";
import { Queue } from "./queue";
import { Turns } from "./turns";
import "./page.css";

const VIEWS = ["now", "queue", "turns", "history", "hours", "events"] as const;
type View = (typeof VIEWS)[number];
const TITLES: Record<View, string> = { now: "Now", queue: "Queue", turns: "Turns", history: "History", hours: "Hours", events: "Events" };

function viewOfAddress(): View {
  const name = window.location.hash.slice(1);
  return VIEWS.find((view) => view === name) ?? "now";
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
  daemon: "gpurotad does not answer. The figures below are the last that it gave; this page continues by itself when it is back.",
  connection: "gpurota-web does not answer. The figures below are old; this page continues by itself when it is back.",
};

function Pulse({ trouble }: { trouble: Live["trouble"] }) {
  const text = { "": "live", connecting: "connecting", daemon: "no daemon", connection: "no connection" }[trouble];
  return (
    <span class={`pulse ${trouble === "" ? "is-live" : "is-broken"}`}>
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  );
}

function Tabs({ view, now }: { view: View; now: Now | null }) {
  const waiting = now?.queue?.waiting ?? 0;
  return (
    <nav aria-label="Views">
      {VIEWS.map((each) => (
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
      {now.level === "totals" && " · shows totals only, no names"}
      {" · "}<a href="licences.txt">licences</a>
    </footer>
  );
}

function Content({ view, live }: { view: View; live: Live }) {
  if (view === "history") return <History />;
  if (view === "turns") return <Turns />;
  if (view === "hours") return <HoursView />;
  if (view === "events") return <Events live={live.trouble === ""} />;
  if (!live.now) return <p class="empty">{live.trouble === "connecting" ? "Connecting…" : "Nothing is known yet."}</p>;
  return view === "queue" ? <Queue now={live.now} /> : <NowView now={live.now} />;
}

function Page() {
  const live = useLive();
  const view = useView();
  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>Skip to the content</a>
      <header>
        <h1><img src="icon.svg" alt="" width="22" height="22" /> gpurota</h1>
        <Tabs view={view} now={live.now} />
        <Pulse trouble={live.trouble} />
      </header>
      <div role="status" class="banner" hidden={TROUBLE[live.trouble] === ""}>{TROUBLE[live.trouble]}</div>
      <main id="content" tabIndex={-1} class={TROUBLE[live.trouble] === "" ? "" : "is-old"}>
        <h2 class="hidden">{TITLES[view]}</h2>
        <Content view={view} live={live} />
      </main>
      <Footer now={live.now} />
    </>
  );
}

const root = document.getElementById("page");
if (root) render(<Page />, root);
