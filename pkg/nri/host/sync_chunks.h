// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "pkg/nri/host/plugin_port.h"

namespace resmgr::nri {

// All pods and containers as messages that a plugin takes (NRI 0.7: all but the last have `more`):
// each has as many objects as fit, pods before containers. Objects are encoded where they go, once:
// a node has thousands, and each plugin gets all. Thread-compatible.
class SyncChunks {
 public:
  // Bytes of one message: below what ttrpc takes, with room for what libraries add.
  static constexpr size_t kMostBytes = size_t{3584} << 10;

  // Told of each pod or container, by its id, that fits in no message and is left out.
  using TooLong = std::function<void(const std::string& id, size_t bytes)>;
  SyncChunks(api::SynchronizeRequest all, size_t most_bytes, TooLong too_long);

  // The next message, encoded; the last one has no `more`. There is at least one.
  struct Chunk {
    std::string bytes;
    bool more = false;
  };
  std::optional<Chunk> Next();

 private:
  // False: the next one is for the next message.
  template <typename List>
  bool Take(const List& list, char field, int& at, std::string& bytes) const;

  const api::SynchronizeRequest all_;
  const size_t most_bytes_;
  const TooLong too_long_;
  int pods_ = 0;        // that were given out
  int containers_ = 0;  // the same
  bool over_ = false;
};

}  // namespace resmgr::nri
