// SPDX-License-Identifier: Apache-2.0
/** How long the end-to-end tests may take: minutes, as part of `make test`, or an hour. Layer: test. */

/** `make e2e`: with Kubernetes' own tests, and many more pods. */
export const isLong = process.env['E2E'] === 'long'
