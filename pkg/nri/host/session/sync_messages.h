// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/ttrpc/multiplexer.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// All pods and containers of a node at one time, encoded as Synchronize requests, all but the last
// with `more` (NRI 0.7). Made once and shared by all plugins that connect while nothing changes:
// for 1,000 containers it takes 14 of the 59 ms that 16 plugins cost the host (nri-host-bench).
struct SyncMessages {
  // A pod or container that exceeds a message and is left out.
  struct TooLong {
    std::string id;
    size_t bytes = 0;
  };

  std::vector<ttrpc::SharedBytes> messages;  // at least one
  std::vector<TooLong> left_out;
};
using SharedSyncMessages = std::shared_ptr<const SyncMessages>;

// Builds the messages: each has as many objects as fit. Objects are encoded once, in place.
// Thread-compatible.
class SyncWriter {
 public:
  // Bytes of one message: less than ttrpc's limit, with room for additions by libraries.
  static constexpr size_t kMostBytes = size_t{3584} << 10;

  explicit SyncWriter(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Pods must be added before containers.
  void Add(const api::PodSandbox& pod);
  void Add(const api::Container& container);
  // Called once, last.
  SharedSyncMessages Finish();

 private:
  template <typename Object>
  void Append(char field, const Object& object);
  void EndMessage();

  const size_t most_bytes_;
  SyncMessages all_;
  std::string bytes_;  // the message that is being filled
};

}  // namespace resmgr::nri
