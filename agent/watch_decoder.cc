// SPDX-License-Identifier: Apache-2.0
#include "agent/watch_decoder.h"

#include <array>
#include <optional>
#include <utility>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"

namespace resmgr::agent {
namespace {

using Type = WatchEvent::Type;

constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes = {{
    {"ADDED", Type::kAdded},
    {"MODIFIED", Type::kModified},
    {"DELETED", Type::kDeleted},
    {"BOOKMARK", Type::kBookmark},
    {"ERROR", Type::kError},
}};

// nullopt for an event of an unknown type.
StatusOr<std::optional<WatchEvent>> Decode(std::string_view line) {
  std::optional<Json> json = ParseJson(line);
  // The message leaves out the text: it could be a Secret's that a proxy sent to the wrong client.
  if (!json || !json->is_object()) return InvalidArgument("a line of the watch is not JSON");
  const std::string type = TextAt(*json, {"type"});
  const Json* object = Find(*json, {"object"});
  if (type.empty() || object == nullptr || !object->is_object()) {
    return InvalidArgument("a line of the watch has no type or no object");
  }
  for (const auto& [name, value] : kTypes) {
    if (type == name) return WatchEvent{.type = value, .object = std::move((*json)["object"])};
  }
  return std::nullopt;
}

}  // namespace

Status WatchDecoder::Feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > max_line_) {
      line_ = std::string();
      return InvalidArgument("a line of the watch has more than {} bytes", max_line_);
    }
    line_ += piece;
    if (end == std::string_view::npos) return OkStatus();
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (Trim(line).empty()) continue;
    RESMGR_ASSIGN_OR_RETURN(std::optional<WatchEvent> event, Decode(line));
    if (event && !sink(*std::move(event))) return OkStatus();
  }
  return OkStatus();
}

}  // namespace resmgr::agent
