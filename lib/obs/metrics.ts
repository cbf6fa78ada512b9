// SPDX-License-Identifier: Apache-2.0
/** Prometheus metrics whose values are read when they are asked for. Layer: lib/obs. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface MetricName {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
}

/** Reads the current values; what it no longer returns is no longer shown. */
export type Read = () => Iterable<Sample>

/** Our names and prom-client's registry: the only file that knows that library. */
export class Metrics {
  readonly #registry = new Registry()

  /** A value that goes up and down. */
  gauge(metric: MetricName, read: Read): void {
    const gauge = new Gauge({
      name: metric.name,
      help: metric.help,
      labelNames: [...metric.labels],
      registers: [this.#registry],
      collect: () => {
        forget(gauge, metric)
        for (const { labels, value } of read()) gauge.set(labels, value)
      },
    })
  }

  /** A count that the caller keeps: it only grows, until the caller starts again. */
  counter(metric: MetricName, read: Read): void {
    const counter = new Counter({
      name: metric.name,
      help: metric.help,
      labelNames: [...metric.labels],
      registers: [this.#registry],
      collect: () => {
        forget(counter, metric)
        for (const { labels, value } of read()) counter.inc(labels, value)
      },
    })
  }

  /** Returns the function that takes one observation, in the unit of `buckets`. */
  histogram(metric: Omit<MetricName, 'labels'>, buckets: readonly number[]): (value: number) => void {
    const histogram = new Histogram({ name: metric.name, help: metric.help, buckets: [...buckets], registers: [this.#registry] })
    return (value) => {
      histogram.observe(value)
    }
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** The page as Prometheus reads it. */
  text(): Promise<string> {
    return this.#registry.metrics()
  }
}

/** Without labels the library would show 0 for what is not known. */
function forget(shown: Gauge | Counter, { labels }: MetricName): void {
  shown.reset()
  if (labels.length === 0) shown.remove()
}
