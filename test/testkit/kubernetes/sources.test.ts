// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { hostArch } from '../../../testkit/base/arch.ts'
import { moduleFor, newestToolchain } from '../../../testkit/kubernetes/build/sources.ts'

const OWN = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
\tgithub.com/spf13/cobra v1.10.2
\tk8s.io/api v0.0.0
)

require (
\tgo.etcd.io/etcd/server/v3 v3.7.0 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/streaming => ./staging/src/k8s.io/streaming
)
`

test('a module for another version requires what its own go.mod does, and its staging modules', () => {
  expect(moduleFor('1.37.2', OWN, 'go1.26.11')).toBe(`module netplane/kubernetes
go 1.26.0
toolchain go1.26.11
godebug default=go1.26
require (
\tk8s.io/kubernetes v1.37.2
\tgithub.com/spf13/cobra v1.10.2
\tgo.etcd.io/etcd/server/v3 v3.7.0
)
replace (
\tk8s.io/api => k8s.io/api v0.37.2
\tk8s.io/streaming => k8s.io/streaming v0.37.2
)
tool k8s.io/kubernetes/test/images/agnhost
`)
})

test('a go.mod that lacks one of them is refused', () => {
  expect(() => moduleFor('1.37.2', OWN.replace('cobra', 'other'), 'go1.26.11')).toThrow('nothing like')
})

test('the newest patch release of Go is the highest number, of this machine', () => {
  const versions = ['1.26.9', '1.26.11', '1.26rc1', '1.27.4'].flatMap((go) => [
    `v0.0.1-go${go}.linux-${hostArch()}`,
    'v0.0.1-go1.26.12.linux-mips',
  ])
  expect(newestToolchain(versions, '1.26')).toBe('go1.26.11')
  expect(() => newestToolchain(versions, '1.25')).toThrow('no Go 1.25')
})
