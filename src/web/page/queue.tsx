// Queue: who waits for what, since when, and when it is expected to start; then what is booked.
import { CancelAction, useSignedIn } from "./actions";
import type { Booking, Now, Request } from "./api";
import { clock, duration, gib, plural, secondsBetween } from "./format";
import { reasonText } from "./reasons";

function wantOf(request: Request): string {
  const memory = request.memory?.bytes ? `${gib(request.memory.bytes)} GiB each`
    : request.memory?.percent ? `${request.memory.percent} % each` : "whole";
  const kind = [request.gpu_type, request.gpu_class].filter((text) => text !== null).join(", ");
  return [plural(request.gpus, "GPU"), memory, request.swap ? "in turns" : "", kind,
    request.seconds !== null ? `for ${duration(request.seconds)}` : ""].filter((text) => text !== "").join(", ");
}

// The user of a request or a booking, marked if it is the signed-in user.
function Who({ of }: { of: Pick<Request, "user" | "as_name" | "request_id" | "uid"> }) {
  const mine = of.uid !== undefined && useSignedIn()?.uid === of.uid;
  return <th scope="row" class="who"><span class={mine ? "user own" : "user"}>{of.user}{of.as_name && <i> {of.as_name}</i>}{mine && <span class="tag">mine</span>}</span><small>{of.request_id}</small></th>;
}

function RequestRow({ request, now }: { request: Request; now: string }) {
  const planned = request.planned_labels ?? [];
  return (
    <tr>
      <td class="number place">{request.position}</td>
      <Who of={request} />
      <td>{wantOf(request)}<small>{reasonText(request, now)}</small><CancelAction request={request} kind="request" /></td>
      <td class="number">{duration(secondsBetween(request.since, now))}</td>
      <td class="number">
        {request.expected ? clock(request.expected, now) : "not known"}
        <small>{planned.length > 0 ? `on GPU ${[...planned].sort().join(", ")}` : ""}</small>
      </td>
    </tr>
  );
}

function Requests({ requests, now }: { requests: Request[]; now: string }) {
  return (
    <div class="panel">
      <table class="queue">
        <caption>Waiting</caption>
        <thead>
          <tr>
            <th scope="col" class="number place"><span class="hidden">Place</span></th><th scope="col">Who</th><th scope="col">Wants</th>
            <th scope="col" class="number">Waits</th><th scope="col" class="number">Starts by</th>
          </tr>
        </thead>
        <tbody>{requests.map((request) => <RequestRow key={request.request_id} request={request} now={now} />)}</tbody>
      </table>
    </div>
  );
}

function Bookings({ bookings, now }: { bookings: Booking[]; now: string }) {
  return (
    <div class="panel">
      <table>
        <caption>Booked</caption>
        <thead>
          <tr><th scope="col">Who</th><th scope="col">GPUs</th><th scope="col" class="number">Begins</th><th scope="col" class="number">Ends</th></tr>
        </thead>
        <tbody>
          {bookings.map((booking) => (
            <tr key={booking.request_id}>
              <Who of={booking} />
              <td>{booking.labels.join(", ")}<small>{reasonText(booking, now)}</small><CancelAction request={booking} kind="booking" /></td>
              <td class="number">{clock(booking.begins, now)}</td>
              <td class="number">{clock(booking.ends, now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Queue({ now }: { now: Now }) {
  const queue = now.queue;
  if (!queue) return null;
  if (!queue.requests) {
    const oldest = queue.oldest_since ? `, the oldest for ${duration(secondsBetween(queue.oldest_since, now.time))}` : "";
    return (
      <p class="empty">
        {queue.waiting === 0 ? "Nobody waits." : `${plural(queue.waiting, "request")} for ${plural(queue.gpus, "GPU")} wait${queue.waiting === 1 ? "s" : ""}${oldest}.`}
        {" "}Who waits is shown where gpurota-web runs with --page names.
      </p>
    );
  }
  return (
    <>
      {queue.requests.length > 0 ? <Requests requests={queue.requests} now={now.time} /> : <p class="empty">Nobody waits.</p>}
      {now.bookings && now.bookings.length > 0 && <Bookings bookings={now.bookings} now={now.time} />}
    </>
  );
}
