// SPDX-License-Identifier: Apache-2.0
/** Figures out of repeated measurements. Layer: bench. */

/** Throws RangeError when there are none, as all of these do. */
export function minimum(values: readonly number[]): number {
  return sorted(values)[0] ?? fail()
}

/** The middle, or the mean of the middle two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** `q` in 0 .. 1, interpolated between neighbours. */
export function quantile(values: readonly number[], q: number): number {
  const order = sorted(values)
  const place = (order.length - 1) * q
  const low = order[Math.floor(place)] ?? fail()
  const high = order[Math.ceil(place)] ?? fail()
  return low + (high - low) * (place - Math.floor(place))
}

/** Of the straight line through the points (x, y) that lies nearest: what one more of x adds, and what is there
 * without any. */
export function line(points: readonly (readonly [x: number, y: number])[]): { readonly slope: number; readonly base: number } {
  const mean = (of: (point: readonly [number, number]) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean((point) => point[0]), mean((point) => point[1])]
  const slope = mean((point) => (point[0] - x) * (point[1] - y)) / mean((point) => (point[0] - x) ** 2)
  return { slope, base: y - slope * x }
}

export interface Interval {
  readonly low: number
  readonly high: number
}

/** The 95 % interval of the median, from order statistics: no assumption on the distribution. With fewer than six
 * values it is their range. */
export function medianInterval(values: readonly number[]): Interval {
  const order = sorted(values)
  const half = 1.96 * Math.sqrt(order.length / 4)
  const low = Math.max(0, Math.floor(order.length / 2 - half) - (order.length < 6 ? order.length : 0))
  const high = order.length - 1 - low
  return { low: order[Math.min(low, high)] ?? fail(), high: order[Math.max(low, high)] ?? fail() }
}

/** Half the distance between the quartiles, as a part of the median: how noisy it was. */
export function spread(values: readonly number[]): number {
  const middle = median(values)
  return middle === 0 ? 0 : (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / Math.abs(middle)
}

function sorted(values: readonly number[]): number[] {
  if (values.length === 0) fail()
  return [...values].sort((a, b) => a - b)
}

function fail(): never {
  throw new RangeError('no values')
}
