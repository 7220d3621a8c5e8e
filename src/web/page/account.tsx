// In the header: who is signed in, or how to.
import { useState } from "preact/hooks";
import { Dialog } from "./dialog";
import { accept, decline, type Offer, type Session, signOut } from "./session";

// Shown instead of all views if only users who have signed in may see them.
export function Wall() {
  return (
    <section class="wall panel">
      <h3>Sign in to see this machine</h3>
      <p>On this machine, type</p>
      <pre class="command">gpurota web</pre>
      <p>and open the link that it prints. It signs you in as the user who typed it.</p>
    </section>
  );
}

function HowTo({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Sign in" action="OK" onDo={() => Promise.resolve()} onClose={onClose}>
      <p>On this machine, type</p>
      <pre class="command">gpurota web</pre>
      <p>and open the link that it prints. It signs you in as the user who typed it.</p>
    </Dialog>
  );
}

// After a link was opened: shows whose link it is, and asks whether to sign in as that user.
export function OfferedLink({ offer, session }: { offer: Offer; session: Session | null }) {
  const same = session?.user === offer.user;
  return (
    <Dialog title={`Sign in as ${offer.user}?`} action={`Sign in as ${offer.user}`} onDo={() => accept(offer)} onClose={decline}>
      <p>The link that you opened is for the account <b>{offer.user}</b>{offer.administrator && ", an administrator"}. What you do on this page is then done as <b>{offer.user}</b>.</p>
      {session && !same && <p>You are signed in as <b>{session.user}</b> now, and would be no more.</p>}
      {session && same && <p>You are signed in as <b>{session.user}</b> already.</p>}
      <p>If you are not <b>{offer.user}</b>, or did not type <code>gpurota web</code> yourself, close this.</p>
    </Dialog>
  );
}

export function Account({ session, canSignIn }: { session: Session | null; canSignIn: boolean }) {
  const [open, setOpen] = useState(false);
  if (session) {
    return (
      <span class="account">
        <span><a href="#sessions"><span class="hidden">Signed in as </span><b>{session.user}</b></a>{session.administrator && session.user !== "root" && <i> administrator</i>}</span>
        {!session.by_proxy && <button type="button" class="small" onClick={() => void signOut()}>Sign out</button>}
      </span>
    );
  }
  if (!canSignIn) return null;
  return (
    <span class="account">
      <button type="button" class="small" onClick={() => setOpen(true)}>Sign in</button>
      {open && <HowTo onClose={() => setOpen(false)} />}
    </span>
  );
}
