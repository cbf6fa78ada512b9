// SPDX-License-Identifier: Apache-2.0
/** Amounts of resources, as Kubernetes writes them. Layer: upgrade (pure). */

const SUFFIXES: Readonly<Record<string, number>> = {
  ...{ '': 1, n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
}

/** "250m", "0.25", 2e2, "1Gi"; undefined: it is no amount. */
export function amountOf(quantity: unknown): number | undefined {
  const [, digits = '', exponent = '', suffix = ''] =
    /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(n|u|m|k|[MGTPE]i?|Ki))?$/.exec(String(quantity)) ?? []
  const factor = SUFFIXES[suffix]
  return digits === '' || factor === undefined ? undefined : Number(digits + exponent) * factor
}

/** The same amount always in the same words: "0.25" → "250m", "1024Mi" → "1Gi". What is no amount stays. */
export function canonicalQuantity(quantity: unknown): unknown {
  const amount = amountOf(quantity)
  if (amount === undefined) return quantity
  if (!Number.isInteger(amount)) return `${Math.round(amount * 1e6) / 1e3}m`
  const binary = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'].find((suffix) => amount !== 0 && amount % (SUFFIXES[suffix] ?? 1) === 0)
  return binary === undefined ? String(amount) : `${amount / (SUFFIXES[binary] ?? 1)}${binary}`
}
