// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pkg/base/wire.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The new bytes of a field; nullopt: unchanged.
using FieldEdit = std::function<std::optional<std::string>(std::string_view bytes)>;

// Edits the bytes of each field at this path, which begins at the outermost message; fields on the
// way may be repeated. All other bytes stay unchanged, and so do malformed messages. nullopt: no
// change.
std::optional<std::string> EditFields(std::string_view message, std::span<const uint32_t> path,
                                      const FieldEdit& edit);

// The message without the fields for which `drop` returns true; all other bytes stay. nullopt: no
// field is dropped, or the message is malformed.
std::optional<std::string> WithoutFields(std::string_view message,
                                         const std::function<bool(const WireReader&)>& drop);

// The message with this text in each occurrence of a field, or appended if there is none.
std::string WithText(std::string_view message, uint32_t field, std::string_view text);

// Reads the last occurrence of a string field; `text` stays if there is none. False: the message is
// malformed.
bool ReadTextField(std::string_view message, uint32_t field, std::string_view& text);
// The same text; "" if there is none, or the message is malformed.
std::string_view TextOfField(std::string_view message, uint32_t field);

// Reads an entry of a map, or a KeyValue of the CRI. False: it is malformed.
bool ReadPair(std::string_view entry, std::string_view& key, std::string_view& value);

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

// ForEachField, but visits only the fields whose bits are set in `wanted`.
template <typename Visit>
bool ForFields(std::string_view message, uint32_t wanted, Visit visit) {
  WireReader reader(message);
  while (reader.NextOf(wanted)) {
    if (!visit(reader)) return false;
  }
  return !reader.failed();
}

// A ContainerStatusResponse with other CPU numbers in status.resources.linux: `edit` gets the
// reported ones. All other bytes stay, also unknown fields. If `edit` resets `shares_in_file`, the
// files that set the shares are removed. nullopt: nothing changes, for example without resources,
// or in a malformed reply.
std::optional<std::string> WithCpuNumbers(std::string_view response,
                                          const std::function<void(CpuNumbers&)>& edit);

}  // namespace resmgr
