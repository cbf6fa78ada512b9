// SPDX-License-Identifier: Apache-2.0
/** How tests run with the addon that has sanitizers. Layer: test. */
import { inOwnNamespaces } from '../../testkit/base/namespaces.ts'

const SCRIPT = [
  // of the command's own mount namespace: elsewhere the addon stays as it is
  'mount --bind build/sanitized/netplane_native.node build/Release/netplane_native.node',
  // node is built without: the runtime has to be there before it, and the C++ library, whose exceptions it follows
  'export LD_PRELOAD="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libstdc++.so)"',
  // what node has at its end it keeps
  'export ASAN_OPTIONS=detect_leaks=0',
  'exec "$@"',
]

/** In front of a command that runs at the package's root. Any report ends its process. Needs root. */
export const withSanitizedAddon: readonly string[] = [...inOwnNamespaces, 'sh', '-c', SCRIPT.join(' && '), 'sh']
