// SPDX-License-Identifier: Apache-2.0
/** A program that removes whatever is in the map of this pin, as fast as it can, until it is killed. Layer: test. */
import { BpfMap } from '#native'

const rows = BpfMap.openPin(process.argv[2] ?? '')
for (;;) for (let key = rows.nextKey(undefined); key !== undefined; key = rows.nextKey(undefined)) rows.delete(key)
