// SPDX-License-Identifier: Apache-2.0
/** Standard input and output as a connection to a port of this place's loopback. Layer: lab (tool).
 *
 * connect PORT */
import { connect } from 'node:net'
import { pipeline } from 'node:stream'

const socket = connect(Number(process.argv[2]), '127.0.0.1')
pipeline(process.stdin, socket, () => undefined)
pipeline(socket, process.stdout, () => process.exit())
