// SPDX-License-Identifier: Apache-2.0
/** Takes out what only its owner may know, wherever it may have got in. Layer: cli (pure). */

export const GONE = '[left out]'

/** Each with what stays of it. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN ([A-Z0-9 ]*)(PRIVATE KEY|CERTIFICATE)-----[\s\S]*?(-----END \1\2-----|$(?![\s\S]))/g, `-----$1$2 ${GONE}-----`],
  // the base64 of "-----BEGIN", as kubeconfig files have it
  [/LS0tLS1CRUdJTi[A-Za-z0-9+/=]+/g, GONE],
  // a token of a service account: three parts, of which the first is JSON
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?/g, GONE],
  [/\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}/gi, `$1 ${GONE}`],
  [/\/\/[^/\s:@"]+:[^/\s@"]+@/g, `//${GONE}@`],
  [
    // from the beginning of a word on, or each place of a long one would be tried
    /((?<![\w.-])["']?[\w.-]*(?:token|password|passwd|secret|private[-_]?key|client-key-data|api[-_]?key|authorization)["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;}\]]+)/gi,
    `$1"${GONE}"`,
  ],
  // of a command line
  [/((?<![\w-])--[\w-]*(?:token|password|secret|api-key)\s+)\S+/g, `$1${GONE}`],
]

export function withoutSecrets(text: string): string {
  return SECRETS.reduce((left, [pattern, stays]) => left.replace(pattern, stays), text)
}
