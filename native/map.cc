// SPDX-License-Identifier: Apache-2.0
// BpfMap: open, inspect, single entries, batches. Layer: native.
#include "map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "args.h"
#include "map-batch.h"
#include "map-chunk.h"
#include "map-dump.h"
#include "program.h"
#include "worker.h"

namespace netplane {
namespace {

bool IsPerCpu(uint32_t type) {
  return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY ||
         type == BPF_MAP_TYPE_LRU_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE;
}

bpf_map_info ReadInfo(Napi::Env env, int fd) {
  bpf_map_info map = {};
  uint32_t size = sizeof(map);
  const char* op = "bpf_obj_get_info_by_fd";
  Check(env, bpf_obj_get_info_by_fd(fd, &map, &size), op);
  return map;
}

MapShape ReadShape(Napi::Env env, int fd) {
  bpf_map_info map = ReadInfo(env, fd);
  MapShape shape{map.type, map.key_size, map.value_size, map.max_entries};
  if (IsPerCpu(map.type)) {
    size_t stride = (static_cast<size_t>(map.value_size) + 7) / 8 * 8;
    shape.value_bytes =
        stride * static_cast<size_t>(Check(env, libbpf_num_possible_cpus(), "libbpf_num_possible_cpus"));
  }
  return shape;
}

}  // namespace

BpfMap::BpfMap(const Napi::CallbackInfo& info) : FdHandle<BpfMap>(info) {
  OpenMap init = Take<OpenMap>(info);
  fd_ = std::move(init.fd);
  shape_ = init.shape;
}

Napi::Object BpfMap::FromFd(Napi::Env env, Fd fd) {
  MapShape shape = ReadShape(env, fd.get());
  return Make(env, OpenMap{std::move(fd), shape});
}

Napi::Value BpfMap::Create(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_create";
  Napi::Object spec = ToObject(info[0], op, "spec");
  std::string name = ToText(spec.Get("name"), op, "name");
  auto type = static_cast<bpf_map_type>(ToInt(spec.Get("type"), op, "type"));
  uint32_t key_size = ToU32(spec.Get("keySize"), op, "keySize");
  uint32_t value_size = ToU32(spec.Get("valueSize"), op, "valueSize");
  uint32_t max_entries = ToU32(spec.Get("maxEntries"), op, "maxEntries");
  auto opts = Opts<bpf_map_create_opts>();
  opts.map_flags = ToU32Or(spec.Get("flags"), 0, op, "flags");
  int fd = bpf_map_create(type, name.c_str(), key_size, value_size, max_entries, &opts);
  return FromFd(info.Env(), OwnFd(info.Env(), fd, op));
}

Napi::Value BpfMap::OpenPinned(const Napi::CallbackInfo& info) {
  return FromFd(info.Env(), OpenPin(info, PinKind::kMap, "map"));
}

Napi::Value BpfMap::OpenId(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_get_fd_by_id";
  int fd = bpf_map_get_fd_by_id(ToU32(info[0], op, "id"));
  return FromFd(info.Env(), OwnFd(info.Env(), fd, op));
}

Napi::Value BpfMap::NextId(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_get_next_id";
  uint32_t next = 0;
  int result = bpf_map_get_next_id(ToU32(info[0], op, "id"), &next);
  return IdOrNone(info.Env(), result, next, op);
}

Napi::Value BpfMap::Info(const Napi::CallbackInfo& info) {
  bpf_map_info map = ReadInfo(info.Env(), fd("bpf_obj_get_info_by_fd"));
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("id", map.id);
  result.Set("name", std::string(map.name, strnlen(map.name, sizeof(map.name))));
  result.Set("type", map.type);
  result.Set("keySize", map.key_size);
  result.Set("valueSize", map.value_size);
  result.Set("maxEntries", map.max_entries);
  result.Set("flags", map.map_flags);
  result.Set("btfId", map.btf_id);
  result.Set("keyTypeId", map.btf_key_type_id);
  result.Set("valueTypeId", map.btf_value_type_id);
  return result;
}

Napi::Value BpfMap::ValueBytes(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(From(info.This(), "valueBytes").shape_.value_bytes));
}

Napi::Value BpfMap::KeyBytes(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), From(info.This(), "keyBytes").shape_.key_bytes);
}

const void* BpfMap::Key(const Napi::CallbackInfo& info, size_t index, const char* op) const {
  Bytes key = ToBytes(info[index], op, "key", shape_.key_bytes);
  return shape_.key_bytes == 0 ? nullptr : key.data;
}

Napi::Value BpfMap::Lookup(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_lookup_elem";
  int map = fd(op);
  const void* key = Key(info, 0, op);
  value_.assign(shape_.value_bytes, 0);
  int result = bpf_map_lookup_elem(map, key, value_.data());
  if (result == -ENOENT) return info.Env().Undefined();
  Check(info.Env(), result, op);
  return Napi::Buffer<uint8_t>::Copy(info.Env(), value_.data(), value_.size());
}

void BpfMap::Update(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_update_elem";
  int map = fd(op);
  uint32_t flags = ToU32Or(info[2], 0, op, "flags");
  const void* key = Key(info, 0, op);
  Bytes value = ToBytes(info[1], op, "value", shape_.value_bytes);
  Check(info.Env(), bpf_map_update_elem(map, key, value.data, flags), op);
}

void BpfMap::UpdateFd(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_update_elem";
  int map = fd(op);
  if (shape_.value_bytes != sizeof(int)) ThrowInvalid(info.Env(), op, "values of this map are no fds");
  int value = BpfProgram::Is(info[1]) ? BpfProgram::From(info[1], op).fd(op) : BpfMap::From(info[1], op).fd(op);
  const void* key = Key(info, 0, op);
  Check(info.Env(), bpf_map_update_elem(map, key, &value, BPF_ANY), op);
}

Napi::Value BpfMap::Delete(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_delete_elem";
  int map = fd(op);
  int result = bpf_map_delete_elem(map, Key(info, 0, op));
  if (result != -ENOENT) Check(info.Env(), result, op);
  return Napi::Boolean::New(info.Env(), result == 0);
}

Napi::Value BpfMap::NextKey(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_get_next_key";
  int map = fd(op);
  const void* key = info[0].IsUndefined() ? nullptr : Key(info, 0, op);
  auto next = Napi::Buffer<uint8_t>::New(info.Env(), shape_.key_bytes);
  int result = bpf_map_get_next_key(map, key, next.Data());
  if (result == -ENOENT) return info.Env().Undefined();
  Check(info.Env(), result, op);
  return next;
}

Napi::Value BpfMap::UpdateBatch(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_update_batch";
  int map = fd(op);
  uint32_t count = ToU32(info[2], op, "count");
  Bytes keys = ToBytes(info[0], op, "keys", size_t{count} * shape_.key_bytes);
  Bytes values = ToBytes(info[1], op, "values", size_t{count} * shape_.value_bytes);
  uint32_t done = 0;
  auto failure = netplane::UpdateBatch(map, shape_, Batch{keys.data, values.data, count}, done);
  if (failure.has_value()) throw ToError(info.Env(), *failure);
  return Napi::Number::New(info.Env(), done);
}

Napi::Value BpfMap::DeleteBatch(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_delete_batch";
  int map = fd(op);
  uint32_t count = ToU32(info[1], op, "count");
  Bytes keys = ToBytes(info[0], op, "keys", size_t{count} * shape_.key_bytes);
  uint32_t existed = 0;
  auto failure = netplane::DeleteBatch(map, shape_, Batch{keys.data, nullptr, count}, existed);
  if (failure.has_value()) throw ToError(info.Env(), *failure);
  return Napi::Number::New(info.Env(), existed);
}

Napi::Value BpfMap::DeleteSame(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_delete_elem";
  int map = fd(op);
  uint32_t count = ToU32(info[2], op, "count");
  Bytes keys = ToBytes(info[0], op, "keys", size_t{count} * shape_.key_bytes);
  Bytes values = ToBytes(info[1], op, "values", size_t{count} * shape_.value_bytes);
  uint32_t deleted = 0;
  auto failure = netplane::DeleteSame(map, shape_, Batch{keys.data, values.data, count}, deleted);
  if (failure.has_value()) throw ToError(info.Env(), *failure);
  return Napi::Number::New(info.Env(), deleted);
}

Napi::Value BpfMap::Dump(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_lookup_batch";
  auto work = std::make_unique<DumpWork>(DuplicateFd(info.Env(), fd(op), op), shape_);
  return Worker<DumpWork>::Start(info.Env(), op, std::move(work));
}

Napi::Value BpfMap::ReadChunk(const Napi::CallbackInfo& info) {
  const char* op = "bpf_map_lookup_batch";
  uint32_t room = ToU32(info[1], op, "room");
  std::vector<uint8_t> cursor;
  if (!info[0].IsUndefined()) {
    Bytes bytes = ToBytes(info[0], op, "cursor", CursorBytes(shape_));
    cursor.assign(bytes.data, bytes.data + bytes.size);
  }
  auto work = std::make_unique<ChunkWork>(DuplicateFd(info.Env(), fd(op), op), shape_, std::move(cursor), room);
  return Worker<ChunkWork>::Start(info.Env(), op, std::move(work));
}

void BpfMap::Pin(const Napi::CallbackInfo& info) { PinFd(info, fd("bpf_obj_pin")); }

void BpfMap::Define(Napi::Env env, Napi::Object exports) {
  Export(env, exports,
         DefineClass(env, kName,
                     {
                         StaticMethod<&BpfMap::Create>("create"),
                         StaticMethod<&BpfMap::OpenPinned>("openPin"),
                         StaticMethod<&BpfMap::OpenId>("openId"),
                         StaticMethod<&BpfMap::NextId>("nextId"),
                         InstanceMethod<&BpfMap::Info>("info"),
                         Property<&BpfMap::ValueBytes>("valueBytes"),
                         Property<&BpfMap::KeyBytes>("keyBytes"),
                         InstanceMethod<&BpfMap::Lookup>("lookup"),
                         InstanceMethod<&BpfMap::Update>("update"),
                         InstanceMethod<&BpfMap::UpdateFd>("updateFd"),
                         InstanceMethod<&BpfMap::Delete>("delete"),
                         InstanceMethod<&BpfMap::NextKey>("nextKey"),
                         InstanceMethod<&BpfMap::UpdateBatch>("updateBatch"),
                         InstanceMethod<&BpfMap::DeleteBatch>("deleteBatch"),
                         InstanceMethod<&BpfMap::DeleteSame>("deleteSame"),
                         InstanceMethod<&BpfMap::Dump>("dump"),
                         InstanceMethod<&BpfMap::ReadChunk>("readChunk"),
                         InstanceMethod<&BpfMap::Pin>("pin"),
                         InstanceMethod<&BpfMap::Close>("close"),
                     }));
}

}  // namespace netplane
