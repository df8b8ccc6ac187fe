// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <google/protobuf/message.h>

namespace resmgr {

// Access to a message's int64 fields by their numbers, for messages that have some fields in
// common. Not for calls that the relay passes on: it takes some 20 ns for each field.

// nullopt: the field is not set, or it is 0 and has no presence of its own. The message must have
// an int64 field of this number.
inline std::optional<int64_t> NumberAt(const google::protobuf::Message& message, uint32_t field) {
  const auto* const descriptor =
      message.GetDescriptor()->FindFieldByNumber(static_cast<int>(field));
  if (!message.GetReflection()->HasField(message, descriptor)) return std::nullopt;
  return message.GetReflection()->GetInt64(message, descriptor);
}

inline void SetNumberAt(google::protobuf::Message& message, uint32_t field, int64_t number) {
  message.GetReflection()->SetInt64(
      &message, message.GetDescriptor()->FindFieldByNumber(static_cast<int>(field)), number);
}

}  // namespace resmgr
