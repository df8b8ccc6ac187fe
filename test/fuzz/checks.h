// SPDX-License-Identifier: Apache-2.0
// Shared by fuzz targets, which fuzz_replay_test compiles as one source (CMakeLists.txt).
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace resmgr::fuzz {

// Ends the run where an expectation does not hold.
inline void Check(bool holds) {
  if (!holds) __builtin_trap();
}

// Whether the message itself has fields that its type does not know. A field of another wire type
// than its own, which Go's classes refuse, counts as one of those.
inline bool HasUnknown(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

}  // namespace resmgr::fuzz
