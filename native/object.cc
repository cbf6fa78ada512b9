// SPDX-License-Identifier: Apache-2.0
// BpfObject: open, inspect, set knobs, load, hand out maps and programs. Layer: native.
#include "object.h"

#include <bpf/btf.h>
#include <string_view>

#include "args.h"
#include "load.h"
#include "map.h"
#include "program.h"
#include "worker.h"

namespace netplane {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Napi::Object MapSpec(Napi::Env env, const std::string& name, const bpf_map* map) {
  Napi::Object spec = Napi::Object::New(env);
  spec.Set("name", name);
  spec.Set("type", static_cast<uint32_t>(bpf_map__type(map)));
  spec.Set("keySize", bpf_map__key_size(map));
  spec.Set("valueSize", bpf_map__value_size(map));
  spec.Set("maxEntries", bpf_map__max_entries(map));
  spec.Set("flags", bpf_map__map_flags(map));
  spec.Set("keyTypeId", bpf_map__btf_key_type_id(map));
  spec.Set("valueTypeId", bpf_map__btf_value_type_id(map));
  return spec;
}

Napi::Object ProgramSpec(Napi::Env env, const bpf_program* program) {
  Napi::Object spec = Napi::Object::New(env);
  spec.Set("name", bpf_program__name(program));
  spec.Set("section", bpf_program__section_name(program));
  spec.Set("type", static_cast<uint32_t>(bpf_program__type(program)));
  spec.Set("instructions", static_cast<uint32_t>(bpf_program__insn_cnt(program)));
  return spec;
}

}  // namespace

BpfObject::BpfObject(const Napi::CallbackInfo& info) : Handle<BpfObject>(info), object_(Take<Init>(info)) {
  bpf_map* map;
  bpf_object__for_each_map(map, object_.get()) maps_.emplace_back(bpf_map__name(map), map);
}

bpf_object* BpfObject::Get(const char* op) const {
  if (object_ == nullptr || close_after_load_) Throw(Env(), EBADF, op, "BpfObject is closed");
  if (loading_) Throw(Env(), EBUSY, op, "BpfObject is being loaded");
  return object_.get();
}

bpf_map* BpfObject::FindMap(const Napi::Value& name, const char* op) const {
  Get(op);
  std::string text = ToText(name, op, "map name");
  for (const auto& [known, map] : maps_) {
    if (known == text) return map;
  }
  Throw(Env(), ENOENT, op, "no map " + text);
}

bpf_program* BpfObject::FindProgram(const Napi::Value& name, const char* op) const {
  bpf_object* object = Get(op);
  std::string text = ToText(name, op, "program name");
  bpf_program* program = bpf_object__find_program_by_name(object, text.c_str());
  if (program == nullptr) Throw(Env(), ENOENT, op, "no program " + text);
  return program;
}

// libbpf names it after the object file, cut to fit: only the end is certain.
bpf_map* BpfObject::FindRodata(const char* op) const {
  Get(op);
  for (const auto& [name, map] : maps_) {
    if (bpf_map__is_internal(map) && EndsWith(name, ".rodata")) return map;
  }
  Throw(Env(), ENOENT, op, "no read-only data");
}

Napi::Value BpfObject::Open(const Napi::CallbackInfo& info) {
  const char* op = "bpf_object__open_file";
  std::string path = ToText(info[0], op, "path");
  LibbpfLog log;
  Init object(bpf_object__open_file(path.c_str(), nullptr));
  if (object == nullptr) Throw(info.Env(), errno, op, log.Text());
  return Make(info.Env(), std::move(object));
}

Napi::Value BpfObject::Btf(const Napi::CallbackInfo& info) {
  const char* op = "btf__raw_data";
  const btf* types = bpf_object__btf(Get(op));
  if (types == nullptr) Throw(info.Env(), ENOENT, op, "object has no BTF");
  uint32_t size = 0;
  const void* data = btf__raw_data(types, &size);
  if (data == nullptr) Throw(info.Env(), errno, op);
  return Napi::Buffer<uint8_t>::Copy(info.Env(), static_cast<const uint8_t*>(data), size);
}

Napi::Value BpfObject::Maps(const Napi::CallbackInfo& info) {
  Get("bpf_object__for_each_map");
  Napi::Array specs = Napi::Array::New(info.Env());
  for (const auto& [name, map] : maps_) specs.Set(specs.Length(), MapSpec(info.Env(), name, map));
  return specs;
}

Napi::Value BpfObject::Programs(const Napi::CallbackInfo& info) {
  bpf_object* object = Get("bpf_object__for_each_program");
  Napi::Array specs = Napi::Array::New(info.Env());
  bpf_program* program;
  bpf_object__for_each_program(program, object) specs.Set(specs.Length(), ProgramSpec(info.Env(), program));
  return specs;
}

Napi::Value BpfObject::Rodata(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__initial_value";
  size_t size = 0;
  const void* data = bpf_map__initial_value(FindRodata(op), &size);
  if (data == nullptr) Throw(info.Env(), ENOENT, op, "no read-only data");
  return Napi::Buffer<uint8_t>::Copy(info.Env(), static_cast<const uint8_t*>(data), size);
}

void BpfObject::SetRodata(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__set_initial_value";
  bpf_map* map = FindRodata(op);
  size_t size = 0;
  bpf_map__initial_value(map, &size);
  Bytes bytes = ToBytes(info[0], op, "read-only data", size);
  Check(info.Env(), bpf_map__set_initial_value(map, bytes.data, bytes.size), op);
}

void BpfObject::SetMaxEntries(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__set_max_entries";
  bpf_map* map = FindMap(info[0], op);
  Check(info.Env(), bpf_map__set_max_entries(map, ToU32(info[1], op, "entries")), op);
}

void BpfObject::SetMapType(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__set_type";
  bpf_map* map = FindMap(info[0], op);
  auto type = static_cast<bpf_map_type>(ToInt(info[1], op, "type"));
  Check(info.Env(), bpf_map__set_type(map, type), op);
  if (type != BPF_MAP_TYPE_RINGBUF) return;
  Check(info.Env(), bpf_map__set_key_size(map, 0), "bpf_map__set_key_size");
  Check(info.Env(), bpf_map__set_value_size(map, 0), "bpf_map__set_value_size");
}

void BpfObject::SetMapFlags(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__set_map_flags";
  bpf_map* map = FindMap(info[0], op);
  Check(info.Env(), bpf_map__set_map_flags(map, ToU32(info[1], op, "flags")), op);
}

void BpfObject::SkipMap(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__set_autocreate";
  Check(info.Env(), bpf_map__set_autocreate(FindMap(info[0], op), false), op);
}

void BpfObject::ReuseMap(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map__reuse_fd";
  bpf_map* map = FindMap(info[0], op);
  int fd = BpfMap::From(info[1], op).fd(op);
  LibbpfLog log;
  int result = bpf_map__reuse_fd(map, fd);
  Check(info.Env(), result, op, log.Text());
}

void BpfObject::SetAutoload(const Napi::CallbackInfo& info) {
  const char* op = "bpf_program__set_autoload";
  bpf_program* program = FindProgram(info[0], op);
  Check(info.Env(), bpf_program__set_autoload(program, ToBool(info[1], op, "on")), op);
}

void BpfObject::StubHelpers(const Napi::CallbackInfo& info) {
  const char* op = "stubHelpers";
  if (!info[0].IsArray()) ThrowInvalid(info.Env(), op, "helpers must be an array");
  auto list = info[0].As<Napi::Array>();
  HelperSet helpers;
  for (uint32_t i = 0; i < list.Length(); i++) helpers.insert(ToU32(list.Get(i), op, "helper"));
  bpf_program* program;
  bpf_object__for_each_program(program, Get(op)) {
    if (bpf_program__autoload(program) && !CanStub(program)) {
      Throw(info.Env(), EOPNOTSUPP, op, std::string("not for section ") + bpf_program__section_name(program));
    }
  }
  stubs_ = std::move(helpers);
}

Napi::Value BpfObject::Load(const Napi::CallbackInfo& info) { return StartLoad(info.Env(), false); }

Napi::Value BpfObject::LoadWithStatistics(const Napi::CallbackInfo& info) { return StartLoad(info.Env(), true); }

Napi::Value BpfObject::StartLoad(Napi::Env env, bool statistics) {
  const char* op = "bpf_object__load";
  auto work = std::make_unique<LoadWork>(Get(op), stubs_, statistics);
  loading_ = true;
  Ref();  // the worker uses object_
  return Worker<LoadWork>::Start(env, op, std::move(work), [this] { Loaded(); });
}

void BpfObject::Loaded() {
  loading_ = false;
  if (close_after_load_) object_.reset();
  Unref();
}

Napi::Value BpfObject::Map(const Napi::CallbackInfo& info) {
  const char* op = "bpf_object__find_map_fd_by_name";
  int fd = bpf_map__fd(FindMap(info[0], op));
  if (fd < 0) Throw(info.Env(), EINVAL, op, "the map was not created: object not loaded, or map skipped");
  return BpfMap::FromFd(info.Env(), DuplicateFd(info.Env(), fd, op));
}

Napi::Value BpfObject::Program(const Napi::CallbackInfo& info) {
  const char* op = "bpf_program__fd";
  int fd = bpf_program__fd(FindProgram(info[0], op));
  if (fd < 0) Throw(info.Env(), EINVAL, op, "the program was not loaded: object not loaded, or autoload off");
  return BpfProgram::FromFd(info.Env(), DuplicateFd(info.Env(), fd, op));
}

void BpfObject::Close(const Napi::CallbackInfo&) {
  if (loading_) close_after_load_ = true;
  else object_.reset();
}

void BpfObject::Define(Napi::Env env, Napi::Object exports) {
  Export(env, exports,
         DefineClass(env, kName,
                     {
                         StaticMethod<&BpfObject::Open>("open"),
                         InstanceMethod<&BpfObject::Btf>("btf"),
                         InstanceMethod<&BpfObject::Maps>("maps"),
                         InstanceMethod<&BpfObject::Programs>("programs"),
                         InstanceMethod<&BpfObject::Rodata>("rodata"),
                         InstanceMethod<&BpfObject::SetRodata>("setRodata"),
                         InstanceMethod<&BpfObject::SetMaxEntries>("setMaxEntries"),
                         InstanceMethod<&BpfObject::SetMapType>("setMapType"),
                         InstanceMethod<&BpfObject::SetMapFlags>("setMapFlags"),
                         InstanceMethod<&BpfObject::SkipMap>("skipMap"),
                         InstanceMethod<&BpfObject::ReuseMap>("reuseMap"),
                         InstanceMethod<&BpfObject::SetAutoload>("setAutoload"),
                         InstanceMethod<&BpfObject::StubHelpers>("stubHelpers"),
                         InstanceMethod<&BpfObject::Load>("load"),
                         InstanceMethod<&BpfObject::LoadWithStatistics>("loadWithStatistics"),
                         InstanceMethod<&BpfObject::Map>("map"),
                         InstanceMethod<&BpfObject::Program>("program"),
                         InstanceMethod<&BpfObject::Close>("close"),
                     }));
}

}  // namespace netplane
