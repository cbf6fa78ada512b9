# SPDX-License-Identifier: Apache-2.0
# The native addon. For a cross-build set CC and CXX (with --sysroot where needed) and pass --arch to node-gyp; nothing here knows the machine.
{
  'targets': [
    {
      'target_name': 'netplane_native',
      'sources': [
        'native/addon.cc',
        'native/args.cc',
        'native/attach.cc',
        'native/errors.cc',
        'native/events.cc',
        'native/handle.cc',
        'native/helper-stubs.cc',
        'native/hook.cc',
        'native/link.cc',
        'native/load.cc',
        'native/map-batch.cc',
        'native/map-chunk.cc',
        'native/map-dump.cc',
        'native/map.cc',
        'native/netlink.cc',
        'native/netns.cc',
        'native/object.cc',
        'native/packet.cc',
        'native/poller.cc',
        'native/program.cc',
        'native/system.cc',
        'native/tc.cc',
      ],
      'defines': [
        'NAPI_VERSION=9',
        'NAPI_CPP_EXCEPTIONS',
        'NODE_ADDON_API_CPP_EXCEPTIONS_ALL',
        'NODE_ADDON_API_DISABLE_DEPRECATED',
        # an environment that ends refuses exceptions as well: no reason to abort
        'NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
      ],
      'cflags_cc!': ['-fno-exceptions', '-fno-rtti', '-std=gnu++20'],
      'cflags_cc': [
        '-std=gnu++17',
        '-fexceptions',
        '-fvisibility=hidden',
        '-Wall',
        '-Wextra',
        '-Werror',
        # others' headers are not ours to warn about
        '-isystem', '<(module_root_dir)/node_modules/node-addon-api',
      ],
      'libraries': ['-lbpf'],
    },
  ],
}
