// The choice of one of a few values: radio buttons that look like a single control.

interface Option<T> {
  value: T;
  text: string;
}

interface Props<T> {
  name: string;
  legend: string;
  options: readonly Option<T>[];
  value: T;
  onChoose: (value: T) => void;
}

export function Choice<T extends string | boolean>({ name, legend, options, value, onChoose }: Props<T>) {
  return (
    <fieldset class="ranges">
      <legend class="hidden">{legend}</legend>
      {options.map((option) => (
        <label key={option.text}>
          <input type="radio" name={name} checked={option.value === value} onChange={() => onChoose(option.value)} />
          <span>{option.text}</span>
        </label>
      ))}
    </fieldset>
  );
}
