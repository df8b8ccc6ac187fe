// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "agent/json_path.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };

  Type type = Type::kBookmark;
  Json object{};  // for kError a Status object
};

// Reads the body of a watch: one JSON object per line, {"type": ..., "object": {...}}, in pieces of
// any size (Kubernetes API, "Efficient detection of changes"). Holds at most one line.
// Thread-compatible.
class WatchDecoder {
 public:
  // The largest object that etcd holds is 1.5 MiB; JSON escapes make more of it.
  static constexpr size_t kMaxLine = 8 << 20;

  // Returning false ends the reading.
  using Sink = std::function<bool(WatchEvent event)>;

  explicit WatchDecoder(size_t max_line = kMaxLine) : max_line_(max_line) {}

  // Calls the sink for every line that has become complete. Unknown types are left out: a newer
  // server may have more. kInvalidArgument for a line that is too long or not an event; nothing
  // more can be read then.
  Status Feed(std::string_view bytes, const Sink& sink);

 private:
  size_t max_line_;
  std::string line_;
};

}  // namespace resmgr::agent
