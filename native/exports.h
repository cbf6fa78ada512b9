// SPDX-License-Identifier: Apache-2.0
// The files that export plain functions. Layer: native, used by addon.cc.
#pragma once

#include <napi.h>

namespace netplane {

void DefineTc(Napi::Env env, Napi::Object exports);
void DefineAttach(Napi::Env env, Napi::Object exports);
void DefineNetns(Napi::Env env, Napi::Object exports);
void DefinePacket(Napi::Env env, Napi::Object exports);
void DefineSystem(Napi::Env env, Napi::Object exports);

}  // namespace netplane
