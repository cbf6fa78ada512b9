// SPDX-License-Identifier: Apache-2.0
/** How long a test waits for what comes by itself, before it says that it does not come. Layer: testkit. */

/** Far more than a busy machine takes: it costs nothing where the wait succeeds. No time that the product promises is
 * told by it, and no silence. */
export const HANG_MS = 30_000
