// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/admin/node_json.h"
#include "pkg/base/status.h"
#include "pkg/dump/pod_trace.h"
#include "pkg/node/node_view.h"

namespace resmgr {

// The dump of one pod's calls for `cri-resmgr-ctl dump`, one at a time. A dump ends by itself:
// after its time, or when its reader, which may have been killed, has not asked for kSilence.
// Loop's thread only.
class PodDump {
 public:
  static constexpr std::chrono::seconds kLongest{600};
  static constexpr std::chrono::seconds kSilence{10};
  // Bytes of text in one answer. More would hold the event loop up.
  static constexpr size_t kMostPiece = size_t{256} * 1024;

  // `node` must outlive this object.
  explicit PodDump(const NodeView& node) : node_(node) {}
  ~PodDump() { End(); }
  PodDump(const PodDump&) = delete;
  PodDump& operator=(const PodDump&) = delete;

  // Begins to dump the calls about "NAMESPACE/POD", which need not exist yet. Returns {"trace"},
  // the number for Next. FailedPrecondition while another dump is under way.
  StatusOr<OrderedJson> Begin(std::string_view pod, std::chrono::seconds duration);
  // {"text","lostLines","lostCalls","more","over","unread"}: the lines since the last call, or the
  // first part of them; then "more" is true, and the rest can be asked for at once. "lostCalls" are
  // calls of any pod that the dumper had no room for. "unread": the dump ended before its time, for
  // want of a reader. NotFound: the dump is over and was read to its end.
  StatusOr<OrderedJson> Next(uint64_t trace);
  // Ends the dump before its time.
  void Stop(uint64_t trace);

 private:
  void AwaitReader();
  void End();

  const NodeView& node_;
  // Begins with the time, so that a number from an earlier daemon is NotFound.
  uint64_t last_trace_ =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::shared_ptr<dump::PodTrace> trace_;
  bool over_ = true;
  bool unread_ = false;
  EventLoop::HandlePtr end_;
  EventLoop::HandlePtr silence_;
};

}  // namespace resmgr
