#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplanectl: which command, and how it ends. Layer: cli.
 *
 * What reads the kernel is loaded when it is needed: help and version must not depend on the addon. */
import { errorCode, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { readArgs, type Order } from './args.ts'
import { usage } from './commands.ts'
import { EXIT } from './exit-codes.ts'
import type { CommandResult } from './command-result.ts'
import { write } from './standard-output.ts'

/** Returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  let order: Order
  try {
    order = readArgs(args)
  } catch (thrown) {
    process.stderr.write(`netplanectl: ${errorText(thrown)}\nTry --help.\n`)
    return EXIT.usage
  }
  switch (order.kind) {
    case 'help':
      await write(usage())
      return EXIT.done
    case 'own version':
      await write(`netplanectl ${packageVersion()}\n`)
      return EXIT.done
    case 'version': {
      const { versionCommand } = await import('#cli/cluster/version.ts')
      return await print(await versionCommand(order))
    }
    case 'get':
    case 'apply':
    case 'create':
    case 'replace':
    case 'delete':
    case 'validate':
    case 'patch':
    case 'label': {
      const { verbCommand } = await import('#cli/resources/run.ts')
      return await print(await verbCommand(order))
    }
    case 'bundle': {
      const { bundleCommand } = await import('#cli/cluster/bundle.ts')
      return await print(await bundleCommand(order))
    }
    case 'ipam show': {
      const { showCommand } = await import('#cli/ipam/show.ts')
      return await print(await showCommand(order))
    }
    case 'ipam check': {
      const { checkCommand } = await import('#cli/ipam/check.ts')
      return await print(await checkCommand(order))
    }
    case 'ipam release': {
      const { releaseCommand } = await import('#cli/ipam/release.ts')
      return await print(await releaseCommand(order))
    }
    case 'convert': {
      const { convertCommand } = await import('#cli/convert/command.ts')
      return await print(await convertCommand(order))
    }
    case 'completion': {
      const { completionCommand } = await import('#cli/completion/command.ts')
      return await print(completionCommand(order))
    }
    case 'report': {
      const { reportTexts } = await import('#cli/run-report.ts')
      for await (const text of reportTexts(order)) await write(text)
      return EXIT.done
    }
    case 'explain': {
      const { explainCommand } = await import('#cli/explain/command.ts')
      return await print(await explainCommand(order))
    }
    case 'flows': {
      const { flowsTexts } = await import('#cli/flows/command.ts')
      for await (const text of flowsTexts(order)) await write(text)
      return EXIT.done
    }
    case 'node status': {
      const { statusCommand } = await import('#cli/node/status.ts')
      return await print(await statusCommand(order))
    }
    case 'node checksystem': {
      const { checksystemCommand } = await import('#cli/node/checksystem.ts')
      return await print(await checksystemCommand(order))
    }
    case 'node bundle': {
      const { nodeBundleCommand } = await import('#cli/node/bundle.ts')
      return await print(await nodeBundleCommand(order))
    }
    case 'policy check': {
      const { checkCommand } = await import('#cli/policy/check.ts')
      return await print(await checkCommand(order))
    }
    case 'install endpoint': {
      const { endpointCommand } = await import('#cli/install/endpoint.ts')
      return await print(await endpointCommand(order))
    }
    case 'install dns': {
      const { dnsCommand } = await import('#cli/install/dns.ts')
      return await print(await dnsCommand(order))
    }
    case 'install check': {
      const { checkCommand } = await import('#cli/install/check.ts')
      return await print(await checkCommand(order))
    }
    case 'install remove': {
      const { removeCommand } = await import('#cli/install/remove.ts')
      return await print(await removeCommand(order))
    }
    case 'migrate host-endpoints': {
      const { hostEndpointsCommand } = await import('#cli/migrate/host-endpoints.ts')
      return await print(await hostEndpointsCommand(order))
    }
    case 'upgrade plan': {
      const { upgradePlanCommand } = await import('#cli/upgrade/command.ts')
      return await print(await upgradePlanCommand(order))
    }
    case 'upgrade run': {
      const { upgradeRunCommand } = await import('#cli/upgrade/command.ts')
      return await print(await upgradeRunCommand(order))
    }
    case 'upgrade back': {
      const { upgradeBackCommand } = await import('#cli/upgrade/command.ts')
      return await print(await upgradeBackCommand(order))
    }
    case 'install images': {
      const { imagesCommand } = await import('#cli/install/images.ts')
      return await print(imagesCommand(order))
    }
  }
}

async function print({ text, warnings, exitCode }: CommandResult): Promise<number> {
  process.stderr.write(warnings)
  await write(text)
  return exitCode
}

process.stdout.on('error', (error) => {
  if (errorCode(error) !== 'EPIPE') throw error
  // the reader has closed the pipe: it has the lines that it wants
  process.exit()
})

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (thrown) {
  process.stderr.write(`netplanectl: ${errorText(thrown)}\n`)
  process.exitCode = EXIT.failed
}
