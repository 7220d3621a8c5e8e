// Fields of the small forms, each with its label.
import type { ComponentChildren } from "preact";

export function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return <label class="field"><span>{label}</span><span>{children}</span></label>;
}

interface NumberProps {
  label: string;
  value: number;
  least: number;
  most: number;
  step: number;
  unit?: string;
  onChange: (value: number) => void;
}

export function NumberField({ label, value, least, most, step, unit, onChange }: NumberProps) {
  return (
    <Field label={label}>
      <input type="number" required min={least} max={most} step={step} value={Number.isNaN(value) ? "" : value} onInput={(event) => onChange(event.currentTarget.valueAsNumber)} />
      {unit && ` ${unit}`}
    </Field>
  );
}

export function TextField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return <Field label={label}><input type="text" maxLength={200} value={value} onInput={(event) => onChange(event.currentTarget.value)} /></Field>;
}
