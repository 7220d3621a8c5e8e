// A calendar of the last weeks: how busy all GPUs together were on each day. Each field shows the
// figure too, because its shade is not exact.
import { useMemo } from "preact/hooks";
import type { History } from "./api";

const DAY_MS = 86_400_000;
const LEVELS = 5;

interface Day {
  date: Date;
  percent: number | null; // null: nothing is known
}

// Days of the reader's own time zone, from a Monday to today.
function daysOf(answer: History): Day[] {
  const sums = new Map<string, { sum: number; count: number }>();
  for (let step = 0; step < answer.steps; step++) {
    const key = new Date(Date.parse(answer.first) + step * answer.step_seconds * 1000).toDateString();
    const day = sums.get(key) ?? { sum: 0, count: 0 };
    for (const gpu of answer.gpus) {
      const figure = gpu.utilisation_percent[step] ?? null;
      if (figure !== null) {
        day.sum += figure;
        day.count += 1;
      }
    }
    sums.set(key, day);
  }
  const date = new Date(answer.first);
  date.setHours(12, 0, 0, 0); // the change to summer time moves no day
  date.setDate(date.getDate() - ((date.getDay() + 6) % 7));
  const days: Day[] = [];
  for (const end = Date.parse(answer.until) + DAY_MS / 2; date.getTime() < end; date.setDate(date.getDate() + 1)) {
    const day = sums.get(date.toDateString());
    days.push({ date: new Date(date), percent: day && day.count > 0 ? Math.round(day.sum / day.count) : null });
  }
  return days;
}

const weekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

function Field({ day }: { day: Day | undefined }) {
  if (!day || day.percent === null) return <td />;
  return <td class={`level-${Math.min(LEVELS - 1, Math.floor((day.percent * LEVELS) / 100))}`} title={dayOfYear.format(day.date)}>{day.percent}</td>;
}

export function Calendar({ answer }: { answer: History }) {
  const days = useMemo(() => daysOf(answer), [answer]);
  const weeks = Array.from({ length: Math.ceil(days.length / 7) }, (_, week) => days.slice(week * 7, week * 7 + 7));
  return (
    <div class="panel">
      <table class="calendar">
        <caption>Utilisation of all GPUs by day <span class="limit">%</span></caption>
        <thead>
          <tr><td />{weeks.map((week, i) => <th key={i} scope="col">{week[0] && dayOfYear.format(week[0].date)}</th>)}</tr>
        </thead>
        <tbody>
          {days.slice(0, 7).map((first, row) => (
            <tr key={row}>
              <th scope="row">{weekday.format(first.date)}</th>
              {weeks.map((week, i) => <Field key={i} day={week[row]} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
