// History: charts of the GPUs' figures, and a table of the same figures: for the whole time, or for
// the time at the pointer.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { ask, type Figures, type GpuHistory, type History as Answer } from "./api";
import { Calendar } from "./calendar";
import { Chart, COLOURS, type Line, patternOf } from "./chart";
import { Choice } from "./choice";
import { clockSeconds } from "./format";

const RANGES = [
  { name: "15m", text: "15 min", seconds: 5 },
  { name: "1h", text: "1 h", seconds: 20 },
  { name: "24h", text: "24 h", seconds: 60 },
  { name: "7d", text: "7 d", seconds: 300 },
  { name: "90d", text: "90 d", seconds: 600 },
] as const;
type Range = (typeof RANGES)[number];
const CHOICES = RANGES.map((range) => ({ value: range.name, text: range.text }));

const FIGURES = [
  { key: "utilisation_percent", most: "max_utilisation_percent", title: "Utilisation", unit: "%", divisor: 1, top: 100 },
  { key: "used_bytes", most: "max_used_bytes", title: "Memory", unit: "GiB", divisor: 2 ** 30, top: null },
  { key: "power_mw", most: "max_power_mw", title: "Power", unit: "W", divisor: 1000, top: null },
] as const;
type Figure = (typeof FIGURES)[number];

function useHistory(range: Range): { answer: Answer | null; error: string } {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    const load = () => {
      if (document.hidden) return;
      ask<Answer>(`api/history/${range.name}`).then(
        (got) => { if (wanted) { setAnswer(got); setError(""); } },
        (reason: Error) => { if (wanted) setError(reason.message); },
      );
    };
    load();
    const timer = window.setInterval(load, range.seconds * 1000);
    return () => {
      wanted = false;
      window.clearInterval(timer);
    };
  }, [range]);
  return { answer, error };
}

const scaled = (figures: Figures, divisor: number): Figures =>
  divisor === 1 ? figures : figures.map((figure) => (figure === null ? null : figure / divisor));

function linesOf(figure: Figure, gpus: GpuHistory[], all: GpuHistory[]): Line[] {
  const lines: Line[] = [];
  for (const gpu of gpus) {
    const place = all.indexOf(gpu);
    const label = `GPU ${gpu.label ?? "lost"}`;
    // Only for one GPU: with a second line for each of several GPUs, a reader could not tell the
    // lines apart.
    if (gpus.length === 1) lines.push({ label: `${label}, most`, place, figures: scaled(gpu[figure.most], figure.divisor), isMost: true });
    lines.push({ label, place, figures: scaled(gpu[figure.key], figure.divisor), isMost: false });
  }
  return lines;
}

function average(figures: Figures): number | null {
  const known = figures.filter((figure) => figure !== null) as number[];
  return known.length === 0 ? null : known.reduce((sum, figure) => sum + figure, 0) / known.length;
}

function most(figures: Figures): number | null {
  return figures.reduce((top: number | null, figure) => (figure === null ? top : Math.max(top ?? 0, figure)), null);
}

function shown(value: number | null | undefined, figure: Figure): string {
  if (value === null || value === undefined) return "–";
  return (value / figure.divisor).toFixed(figure.key === "used_bytes" ? 1 : 0);
}

function Sample({ place }: { place: number }) {
  return (
    <svg class={`sample line-${place % COLOURS}`} width="26" height="8" aria-hidden="true">
      <line x1="0" x2="26" y1="4" y2="4" stroke-dasharray={patternOf(place).join(" ") || "none"} />
    </svg>
  );
}

interface TableProps {
  answer: Answer;
  hidden: Set<string>;
  point: number | null;
  onToggle: (uuid: string) => void;
}

function Row({ gpu, place, point, isShown, onToggle }: { gpu: GpuHistory; place: number; point: number | null; isShown: boolean; onToggle: (uuid: string) => void }) {
  return (
    <tr>
      <th scope="row">
        <label><input type="checkbox" checked={isShown} onChange={() => onToggle(gpu.uuid)} /> <Sample place={place} /> GPU {gpu.label ?? "lost"}</label>
      </th>
      {FIGURES.flatMap((figure) => [
        <td key={`${figure.key} average`} class="number">{shown(point === null ? average(gpu[figure.key]) : gpu[figure.key][point], figure)}</td>,
        <td key={`${figure.key} most`} class="number most">{shown(point === null ? most(gpu[figure.most]) : gpu[figure.most][point], figure)}</td>,
      ])}
    </tr>
  );
}

function Table({ answer, hidden, point, onToggle }: TableProps) {
  const when = point === null ? "" : clockSeconds(new Date(Date.parse(answer.first) + point * answer.step_seconds * 1000).toISOString());
  return (
    <div class="panel figures">
      <table>
        <caption>{point === null ? "Over the whole time" : `At ${when}`}</caption>
        <thead>
          <tr><td />{FIGURES.map((figure) => <th key={figure.key} scope="colgroup" colSpan={2} class="number">{figure.title}, {figure.unit}</th>)}</tr>
          <tr>
            <th scope="col">Shown</th>
            {FIGURES.flatMap((figure) => [
              <th key={`${figure.key} average`} scope="col" class="number">avg</th>, <th key={`${figure.key} most`} scope="col" class="number">max</th>,
            ])}
          </tr>
        </thead>
        <tbody>
          {answer.gpus.map((gpu, place) => (
            <Row key={gpu.uuid} gpu={gpu} place={place} point={point} isShown={!hidden.has(gpu.uuid)} onToggle={onToggle} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const LAYOUTS = [{ value: true, text: "One chart per GPU" }, { value: false, text: "Together" }];

interface ChartsProps {
  answer: Answer;
  gpus: GpuHistory[]; // that are shown
  onPoint: (index: number | null) => void;
}

function useTimes(answer: Answer): { times: number[]; from: number; to: number } {
  return useMemo(() => {
    const first = Date.parse(answer.first) / 1000;
    const times = Array.from({ length: answer.steps }, (_, i) => first + i * answer.step_seconds);
    return { times, from: Date.parse(answer.since) / 1000, to: Date.parse(answer.until) / 1000 };
  }, [answer]);
}

function Together({ answer, gpus, onPoint }: ChartsProps) {
  const time = useTimes(answer);
  const charts = useMemo(() => FIGURES.map((figure) => ({ figure, lines: linesOf(figure, gpus, answer.gpus) })), [answer, gpus]);
  return (
    <div>
      {charts.map(({ figure, lines }) => (
        <Chart key={figure.key} title={figure.title} unit={figure.unit} {...time} lines={lines} most={figure.top} isSmall={false} onPoint={onPoint} />
      ))}
    </div>
  );
}

// All charts of a figure have one scale, so that GPUs can be compared.
function Apart({ answer, gpus, onPoint }: ChartsProps) {
  const time = useTimes(answer);
  const rows = useMemo(() => {
    const tops = FIGURES.map((figure) => figure.top ?? (Math.max(0, ...gpus.map((gpu) => most(gpu[figure.most]) ?? 0)) / figure.divisor) * 1.05);
    return gpus.map((gpu) => ({
      gpu,
      charts: FIGURES.map((figure, i) => ({ figure, top: tops[i] || 1, lines: linesOf(figure, [gpu], answer.gpus) })),
    }));
  }, [answer, gpus]);
  return (
    <div>
      {rows.map(({ gpu, charts }) => (
        <section key={gpu.uuid} class="panel row" aria-label={`GPU ${gpu.label ?? "lost"}`}>
          <h3>GPU {gpu.label ?? "lost"}</h3>
          <div class="charts">
            {charts.map(({ figure, top, lines }) => (
              <Chart key={figure.key} title={figure.title} unit={figure.unit} {...time} lines={lines} most={top} isSmall onPoint={onPoint} />
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

const FEW = 3; // GPUs whose lines a reader can tell apart in one chart

function Charts({ answer }: { answer: Answer }) {
  const [hidden, setHidden] = useState<Set<string>>(new Set());
  const [point, setPoint] = useState<number | null>(null);
  const [chosen, setChosen] = useState<boolean | null>(null);
  const toggle = useCallback((uuid: string) => setHidden((before) => {
    const after = new Set(before);
    if (!after.delete(uuid)) after.add(uuid);
    return after;
  }), []);
  const gpus = useMemo(() => answer.gpus.filter((gpu) => !hidden.has(gpu.uuid)), [answer, hidden]);
  const apart = chosen ?? answer.gpus.length > FEW;
  const Shown = apart ? Apart : Together;
  return (
    <>
      <Choice name="layout" legend="Charts" options={LAYOUTS} value={apart} onChoose={setChosen} />
      <div class="history">
        <Shown answer={answer} gpus={gpus} onPoint={setPoint} />
        <Table answer={answer} hidden={hidden} point={point !== null && point < answer.steps ? point : null} onToggle={toggle} />
      </div>
    </>
  );
}

export function History() {
  const [range, setRange] = useState<Range>(RANGES[0]);
  const { answer, error } = useHistory(range);
  return (
    <div class="view">
      <Choice name="range" legend="How long back" options={CHOICES} value={range.name} onChoose={(name) => setRange(RANGES.find((each) => each.name === name) ?? RANGES[0])} />
      {error !== "" && <p class="trouble">The history cannot be had: {error}.</p>}
      {answer && answer.steps === 0 && <p class="empty">Nothing was recorded in this time.</p>}
      {answer && answer.steps > 0 && <Charts answer={answer} />}
      {answer && answer.steps > 0 && range.name === "90d" && <Calendar answer={answer} />}
    </div>
  );
}
