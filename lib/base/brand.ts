// SPDX-License-Identifier: Apache-2.0
/** Types for values that look alike but must not be mixed; only a parser or guard makes one. Layer: lib/base. */

declare const brand: unique symbol

/** `Branded<number, 'port'>` is a number that has passed the check for a port. */
export type Branded<T, Name extends string> = T & { readonly [brand]: Name }
