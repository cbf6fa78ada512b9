// SPDX-License-Identifier: Apache-2.0
// Arguments from JavaScript, checked. Layer: native.
#include "args.h"

#include <cmath>
#include <limits>

#include "errors.h"

namespace netplane {
namespace {

[[noreturn]] void Refuse(const Napi::Value& value, const char* op, const char* what, const std::string& wanted) {
  ThrowInvalid(value.Env(), op, std::string(what) + " must be " + wanted);
}

uint32_t ToInteger(const Napi::Value& value, double max, const char* op, const char* what) {
  if (!value.IsNumber()) Refuse(value, op, what, "a number");
  double number = value.As<Napi::Number>().DoubleValue();
  // the negated form also refuses NaN
  if (!(number >= 0 && number <= max) || std::trunc(number) != number) {
    Refuse(value, op, what, "an integer from 0 to " + std::to_string(static_cast<uint64_t>(max)));
  }
  return static_cast<uint32_t>(number);
}

}  // namespace

Bytes ToBytes(const Napi::Value& value, const char* op, const char* what) {
  if (!value.IsTypedArray()) Refuse(value, op, what, "a Uint8Array");
  auto array = value.As<Napi::TypedArray>();
  if (array.TypedArrayType() != napi_uint8_array) Refuse(value, op, what, "a Uint8Array");
  auto bytes = value.As<Napi::Uint8Array>();
  return Bytes{bytes.Data(), bytes.ByteLength()};
}

Bytes ToBytes(const Napi::Value& value, const char* op, const char* what, size_t exact) {
  Bytes bytes = ToBytes(value, op, what);
  if (bytes.size != exact) {
    Refuse(value, op, what, std::to_string(exact) + " bytes, not " + std::to_string(bytes.size));
  }
  return bytes;
}

uint32_t ToU32(const Napi::Value& value, const char* op, const char* what) {
  return ToInteger(value, std::numeric_limits<uint32_t>::max(), op, what);
}

uint32_t ToU32Or(const Napi::Value& value, uint32_t fallback, const char* op, const char* what) {
  return value.IsUndefined() ? fallback : ToU32(value, op, what);
}

int ToInt(const Napi::Value& value, const char* op, const char* what) {
  return static_cast<int>(ToInteger(value, std::numeric_limits<int>::max(), op, what));
}

int ToIfindex(const Napi::Value& value, const char* op) {
  int ifindex = ToInt(value, op, "ifindex");
  if (ifindex == 0) Refuse(value, op, "ifindex", "1 or more");
  return ifindex;
}

bool ToBool(const Napi::Value& value, const char* op, const char* what) {
  if (!value.IsBoolean()) Refuse(value, op, what, "a boolean");
  return value.As<Napi::Boolean>().Value();
}

std::string ToText(const Napi::Value& value, const char* op, const char* what) {
  if (!value.IsString()) Refuse(value, op, what, "a string");
  std::string text = value.As<Napi::String>().Utf8Value();
  if (text.find('\0') != std::string::npos) Refuse(value, op, what, "a string without NUL");
  return text;
}

Napi::Object ToObject(const Napi::Value& value, const char* op, const char* what) {
  if (!value.IsObject()) Refuse(value, op, what, "an object");
  return value.As<Napi::Object>();
}

Napi::Function ToFunction(const Napi::Value& value, const char* op, const char* what) {
  if (!value.IsFunction()) Refuse(value, op, what, "a function");
  return value.As<Napi::Function>();
}

}  // namespace netplane
