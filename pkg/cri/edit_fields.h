// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace resmgr {

// The new bytes of a field; nullopt: unchanged.
using FieldEdit = std::function<std::optional<std::string>(std::string_view bytes)>;

// Edits the bytes of each field at this path, which begins at the outermost message; fields on the
// way may be repeated. All other bytes stay unchanged, and so do malformed messages. nullopt: no
// change.
std::optional<std::string> EditFields(std::string_view message, std::span<const uint32_t> path,
                                      const FieldEdit& edit);

// The message with this text in each occurrence of a field, or appended if there is none.
std::string WithText(std::string_view message, uint32_t field, std::string_view text);

// The last occurrence of a string field; "" if there is none, or the message is malformed.
std::string_view TextOfField(std::string_view message, uint32_t field);

}  // namespace resmgr
