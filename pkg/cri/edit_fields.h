// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace resmgr {

// What becomes of one field's bytes; nullopt: they stay.
using FieldEdit = std::function<std::optional<std::string>(std::string_view bytes)>;

// The protobuf message with other bytes in each field at this path, from the outermost message
// inwards; fields on the way may be repeated. All other bytes stay as they are, and so do messages
// that are no protobuf. nullopt: nothing changes.
std::optional<std::string> EditFields(std::string_view message, std::span<const uint32_t> path,
                                      const FieldEdit& edit);

// The message with this text in each occurrence of a field, or behind all else where there is none.
std::string WithText(std::string_view message, uint32_t field, std::string_view text);

// The last occurrence of a text; "" where there is none, or the bytes are no protobuf.
std::string_view TextOfField(std::string_view message, uint32_t field);

}  // namespace resmgr
