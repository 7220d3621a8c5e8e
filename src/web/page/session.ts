// The signed-in user, and calls of the control protocol as that user. The session's secret has two
// halves: a cookie that no script can read, and a key that the page stores and sends in a header
// (docs/design/web-sessions.md).
import { useEffect, useState } from "preact/hooks";

export interface Session {
  session_id: string;
  uid: number;
  user: string;
  ends: string;
  by_proxy: boolean;
  administrator: boolean;
}

// A sign-in link that was opened: the user it signs in, if the person confirms.
export interface Offer {
  secret: string;
  user: string;
  administrator: boolean;
}

export interface SessionState {
  session: Session | null;
  notice: string;
  offer: Offer | null;
}

const KEY = "gpurota-session";
const SECRET = "#sign-in=";
export const SIGNED_OUT = 401;
const INTERFACE = "dev.gpurota.";

let state: SessionState = { session: null, notice: "", offer: null };
const listeners = new Set<(state: SessionState) => void>();

function change(next: Partial<SessionState>): void {
  state = { ...state, ...next };
  listeners.forEach((listener) => listener(state));
}

function set(session: Session | null, notice = ""): void {
  if (session === null) window.localStorage.removeItem(KEY);
  change({ session, notice });
}

// The request needs a signed-in user.
export class SignedOut extends Error {
  constructor() { super("you are signed out"); }
}

// This page's half of the secret, if there is one.
export function sessionHeaders(): Record<string, string> {
  const key = window.localStorage.getItem(KEY);
  return key === null ? {} : { "Gpurota-Session": key };
}

// Handles the server's answer that there is no such session.
export function onSignedOut(): SignedOut {
  if (state.session !== null) set(null, "You are signed out: the session is over, or gpurota was restarted.");
  else window.localStorage.removeItem(KEY);
  return new SignedOut();
}

interface Reply<T> {
  parameters: T & { message?: string; parameter?: string };
  error?: string;
}

function reasonOf(text: string): string {
  try {
    return (JSON.parse(text) as { error: string }).error;
  } catch {
    return text.trim();
  }
}

async function post<T>(path: string, method: string, parameters: object, headers: Record<string, string>): Promise<T> {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ method: INTERFACE + method, parameters }),
    cache: "no-store",
  });
  const text = await answer.text();
  if (answer.status === SIGNED_OUT) throw onSignedOut();
  if (!answer.ok) throw new Error(reasonOf(text) || `gpurota-web answered ${answer.status}`);
  const reply = JSON.parse(text) as Reply<T>;
  if (reply.error !== undefined) throw new Error(reply.parameters.message ?? `the value of ${reply.parameters.parameter} is not accepted`);
  return reply.parameters;
}

// Calls a method as the signed-in user. Fails with a sentence.
export function call<T>(method: string, parameters: object = {}): Promise<T> {
  return post<T>("api/call", method, parameters, sessionHeaders());
}

type Known = Omit<Session, "administrator">;

function look(secret: string): Promise<Omit<Offer, "secret">> {
  return post<Omit<Offer, "secret">>("api/sign-in", "GetWebLink", { secret }, {});
}

// Anybody can send another person a link that signs in as the sender. So the page shows whose link
// it is, and does nothing until the person confirms.
async function consider(secret: string): Promise<void> {
  try {
    const { user, administrator } = await look(secret);
    change({ offer: { secret, user, administrator }, notice: "" });
  } catch (error) {
    const still = state.session === null ? "You are not signed in" : `You are still signed in as ${state.session.user}`;
    change({ offer: null, notice: `${still}: ${(error as Error).message}.` });
  }
}

export function decline(): void {
  change({ offer: null });
}

// Signs in after the person has confirmed. Fails with a sentence, and then nothing has changed.
export async function accept({ secret }: Offer): Promise<void> {
  await look(secret);
  // End the old session: its cookie is replaced, so nobody could use it any more.
  if (state.session !== null && !state.session.by_proxy) await call("EndWebSessions").catch(() => undefined);
  const reply = await post<{ token: string; session: Known; administrator: boolean }>("api/sign-in", "SignIn", { secret }, {});
  window.localStorage.setItem(KEY, reply.token);
  set({ ...reply.session, administrator: reply.administrator });
}

// Finds out who is already signed in: from an earlier page of this browser, or by a server in front
// of gpurota-web.
export async function resume(): Promise<void> {
  if (state.session !== null) return;
  try {
    const { sessions } = await call<{ sessions: (Known & { current: boolean })[] }>("ListWebSessions");
    const current = sessions.find((each) => each.current);
    const { administrator } = await call<{ administrator: boolean }>("GetInfo");
    if (current) set({ ...current, administrator });
  } catch {
    // Not signed in, or the daemon is away.
  }
}

export async function signOut(): Promise<void> {
  await call("EndWebSessions").catch(() => undefined);
  set(null);
}

async function begin(): Promise<void> {
  const { hash } = window.location;
  const isLink = hash.startsWith(SECRET);
  // Remove the secret from the address bar and from the history.
  if (isLink) window.history.replaceState(null, "", "#now");
  if (window.localStorage.getItem(KEY) !== null) await resume();
  if (isLink) await consider(decodeURIComponent(hash.slice(SECRET.length)));
}

export function useSession(): SessionState {
  const [shown, setShown] = useState(state);
  useEffect(() => {
    listeners.add(setShown);
    void begin();
    // A link opened in a tab that already shows the page.
    const onHash = () => { if (window.location.hash.startsWith(SECRET)) void begin(); };
    window.addEventListener("hashchange", onHash);
    return () => {
      listeners.delete(setShown);
      window.removeEventListener("hashchange", onHash);
    };
  }, []);
  return shown;
}
