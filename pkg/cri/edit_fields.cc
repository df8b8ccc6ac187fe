// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/edit_fields.h"

#include <array>

#include "pkg/base/field_writer.h"
#include "pkg/base/wire.h"

namespace resmgr {

std::optional<std::string> EditFields(std::string_view message, std::span<const uint32_t> path,
                                      const FieldEdit& edit) {
  std::string out;
  bool changes = false;
  std::string_view unchanged = message;  // since the last change
  std::string_view rest = message;
  WireReader reader(message);
  while (reader.Next()) {
    const std::string_view from_field = rest;
    rest = reader.rest();
    if (reader.field() != path.front() || !reader.is_bytes()) continue;
    const std::optional<std::string> changed =
        path.size() == 1 ? edit(reader.bytes()) : EditFields(reader.bytes(), path.subspan(1), edit);
    if (!changed) continue;
    changes = true;
    out += unchanged.substr(0, unchanged.size() - from_field.size());
    FieldWriter(out).Bytes(path.front(), *changed);
    unchanged = rest;
  }
  if (!changes || reader.failed()) return std::nullopt;
  out += unchanged;
  return out;
}

std::string WithText(std::string_view message, uint32_t field, std::string_view text) {
  const std::array path = {field};
  std::optional<std::string> changed =
      EditFields(message, path, [text](std::string_view) { return std::string(text); });
  if (changed) return *std::move(changed);
  std::string longer(message);
  FieldWriter(longer).Bytes(field, text);
  return longer;
}

std::string_view TextOfField(std::string_view message, uint32_t field) {
  std::string_view text;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field && reader.is_bytes()) text = reader.bytes();
  }
  return reader.failed() ? std::string_view() : text;
}

}  // namespace resmgr
