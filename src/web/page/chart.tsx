// A chart of one figure. Either a chart of several GPUs, whose lines each have a colour and a
// pattern, or a small chart of one GPU.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Figures } from "./api";

export interface Line {
  label: string;
  place: number; // of the GPU on the machine: decides colour and pattern
  figures: Figures;
  isMost: boolean; // the maximum in each step, not the average
}

const PATTERNS = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
export const COLOURS = 8;

export function patternOf(place: number): number[] {
  return PATTERNS[Math.floor(place / 2) % PATTERNS.length] ?? [];
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

interface Props {
  title: string;
  unit: string;
  times: number[];
  from: number; // the times at both ends, in seconds
  to: number;
  lines: Line[];
  most: number | null; // the top of the scale; null: as the figures need
  isSmall: boolean;
  onPoint: (index: number | null) => void;
}

const HEIGHT = { small: 104, large: 190 };

function optionsOf(props: Props, width: number): uPlot.Options {
  const text = colour("--muted");
  const grid = { stroke: colour("--grid"), width: 1 };
  const height = props.isSmall ? HEIGHT.small : HEIGHT.large;
  const axis = { stroke: text, grid, ticks: { ...grid, size: 4 }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "history" }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { range: () => [props.from, props.to] }, y: { range: (_, __, top) => [0, props.most ?? Math.max(1, top * 1.1)] } },
    axes: [
      { ...axis, size: props.isSmall ? 22 : 40, space: props.isSmall ? 70 : 90, values: [
        [86400 * 20, "{D} {MMM}", null, null, null, null, null, null, 1],
        [86400, "{D} {MMM}", null, null, null, null, null, null, 1],
        [60, "{HH}:{mm}", props.isSmall ? null : "\n{D} {MMM}", null, props.isSmall ? null : "\n{D} {MMM}", null, null, null, 1],
        [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
      ] },
      { ...axis, size: 40, space: props.isSmall ? 24 : 30 },
    ],
    series: [{}, ...props.lines.map((line) => ({
      label: line.label,
      stroke: colour(`--line-${line.place % COLOURS}`),
      width: line.isMost ? 1 : 1.5,
      alpha: line.isMost ? 0.5 : 1,
      dash: line.isMost ? [1, 2] : props.isSmall ? [] : patternOf(line.place),
      points: { show: false },
      spanGaps: false,
      ...(props.isSmall && !line.isMost && { fill: colour(`--fill-${line.place % COLOURS}`) }),
    }))],
    hooks: { setCursor: [(plot) => props.onPoint(plot.cursor.idx ?? null)] },
  };
}

export function Chart(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      plot = new uPlot(optionsOf(props, element.clientWidth), [props.times, ...props.lines.map((line) => line.figures)], element);
    };
    draw();
    let width = element.clientWidth;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth === width) return;
      width = element.clientWidth;
      plot?.setSize({ width, height: props.isSmall ? HEIGHT.small : HEIGHT.large });
    });
    observer.observe(element);
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", draw);
      plot?.destroy();
    };
  }, [props.times, props.lines, props.most, props.from, props.to, props.isSmall]);
  return (
    <figure class={props.isSmall ? "chart small" : "panel chart"}>
      <figcaption>{props.title} <span class="limit">{props.unit}</span></figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}
