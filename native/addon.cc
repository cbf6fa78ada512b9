// SPDX-License-Identifier: Apache-2.0
// What the addon exports. Layer: native.
#include "errors.h"
#include "events.h"
#include "exports.h"
#include "handle.h"
#include "helper-stubs.h"
#include "link.h"
#include "map.h"
#include "netlink.h"
#include "object.h"
#include "program.h"

namespace netplane {
namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  LibbpfLog::Install();
  InstallStubHandlers();
  env.SetInstanceData(new AddonData());
  BpfObject::Define(env, exports);
  BpfMap::Define(env, exports);
  BpfProgram::Define(env, exports);
  BpfLink::Define(env, exports);
  EventReader::Define(env, exports);
  NetlinkSocket::Define(env, exports);
  DefineTc(env, exports);
  DefineAttach(env, exports);
  DefineNetns(env, exports);
  DefinePacket(env, exports);
  DefineSystem(env, exports);
  return exports;
}

}  // namespace
}  // namespace netplane

using netplane::Init;
NODE_API_MODULE(netplane_native, Init)
