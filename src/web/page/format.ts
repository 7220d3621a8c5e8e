// Amounts and times in the form for people.

const GIB = 2 ** 30;

export function gib(bytes: number): string {
  const value = bytes / GIB;
  if (bytes > 0 && value < 0.05) return "<0.1";
  return value >= 99.95 ? value.toFixed(0) : value.toFixed(1);
}

export function watts(milliwatts: number): string {
  return Math.round(milliwatts / 1000).toString();
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

// "45 s", "12 min", "3 h", "3 h 05", "4 d", never broken into two lines.
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}\u00a0s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes}\u00a0min`;
  const hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)}\u00a0d`;
  return minutes % 60 === 0 ? `${hours}\u00a0h` : `${hours}\u00a0h\u00a0${String(minutes % 60).padStart(2, "0")}`;
}

// By the server's clock: the reader's may be wrong.
export function secondsBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const withSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const withDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false });

export function clock(time: string, now: string): string {
  const then = new Date(time);
  return then.toDateString() === new Date(now).toDateString() ? timeOfDay.format(then) : withDay.format(then);
}

export function clockSeconds(time: string): string {
  const then = new Date(time);
  return then.toDateString() === new Date().toDateString()
    ? withSeconds.format(then)
    : `${withDay.format(then)}`;
}

export function words(text: string): string {
  return text.replace(/_/g, " ");
}
