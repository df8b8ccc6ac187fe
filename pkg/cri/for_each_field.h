// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "pkg/base/wire.h"

namespace resmgr {

// Reads the message and calls visit(reader) for each field; visit returns false if a nested message
// is malformed. False: the message is malformed.
template <typename Visit>
bool ForEachField(std::string_view message, Visit visit) {
  WireReader reader(message);
  while (reader.Next()) {
    if (!visit(reader)) return false;
  }
  return !reader.failed();
}

// The same for the fields whose bits are set.
template <typename Visit>
bool ForFields(std::string_view message, uint32_t wanted, Visit visit) {
  WireReader reader(message);
  while (reader.NextOf(wanted)) {
    if (!visit(reader)) return false;
  }
  return !reader.failed();
}

}  // namespace resmgr
